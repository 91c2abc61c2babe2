# What `__getattr__` finds when it is asked for.
from . import integrations as integrations
from . import lm_head as lm_head
from . import stats as stats
from . import track as track
from ._ucas import Bug as Bug
from ._ucas import Error as Error
from ._ucas import Verdict as Verdict
from ._ucas import Verdicts as Verdicts
from .explanation import explain as explain
from .runs import Run as Run
from .runs import read as read
from .shaping import Advantages as Advantages
from .shaping import advantages as advantages
from .shaping import method as method
from .shaping import methods as methods
from .shaping import token_loss as token_loss
from .tokenizer import Tokenizer as Tokenizer
from .training import Training as Training
from .training import train as train
from .verifier import Verifier as Verifier
from .verifier import verify as verify

__version__: str

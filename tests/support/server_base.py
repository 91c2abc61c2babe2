"""What servers of the tests have in common: many connections at once, replies in JSON or of any text, also of another length than
they say, and nothing on the terminal."""
import http.server
import json


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request, client_address):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def stall(self):
        """Says nothing until the other side gives up."""
        self.close_connection = True
        try:
            while self.connection.recv(65536):
                pass
        except OSError:
            pass

    def reply(self, status, body, headers=(), length=None, kind="application/json"):
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text) if length is None else length))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

# A server that gives access tokens, with nothing but Python's standard library:
#
#   HOLDFAST_API_KEYS=NAME:SECRET ORIGIN=http://localhost:8000 python3 server.py 127.0.0.1:8090
#   curl 'http://127.0.0.1:8090/token?room=hall&name=Ada'

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


def part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def mint(key: str, secret: str, identity: str, name: str, room: str) -> str:
    """Signs what a person may do (docs/API.md has all grants) with the key that signaling nodes have."""
    claims = {"iss": key, "sub": identity, "name": name, "exp": int(time.time()) + 600, "video": {"roomJoin": True, "room": room}}
    signed = ".".join(part(json.dumps(each).encode()) for each in ({"alg": "HS256", "typ": "JWT"}, claims))
    return signed + "." + part(hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest())


class Tokens(BaseHTTPRequestHandler):
    def do_GET(self):
        address = urlsplit(self.path)
        asked = parse_qs(address.query)
        room, name = (asked.get(field, [""])[0] for field in ("room", "name"))
        if address.path != "/token":
            return self.send_error(404)
        if not room or not name:
            return self.send_error(400, "room and name are missing")
        # Put your own here: who is logged in, and whether that person may enter the room. An identity is one person's.
        body = json.dumps({"token": mint(KEY, SECRET, name, name, room)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Access-Control-Allow-Origin", os.environ.get("ORIGIN", ""))  # of the page that asks
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    KEY, _, SECRET = os.environ.get("HOLDFAST_API_KEYS", "").split(",")[0].strip().partition(":")
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "").rpartition(":")
    if not SECRET or not port:
        sys.exit("usage: HOLDFAST_API_KEYS=NAME:SECRET python3 server.py HOST:PORT")
    server = ThreadingHTTPServer((host, int(port)), Tokens)
    print(f"http://{host}:{server.server_port}/token", flush=True)
    server.serve_forever()

"""A server for S3 that keeps one bucket in memory, for the checks of options. Not a program.

It knows what Lightfoot's requests need: listings, reads, writes, copies and removals of objects. It checks no signature.
"""

import contextlib
import http.server
import os
import re
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

BUCKET = "bucket"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers one connection's requests."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Prints nothing."""

    def reply(self, status, body=b"", **headers):
        """Sends an answer; that of HEAD has no body."""
        self.send_response(status)
        headers = {"Content-Length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def key(self):
        """The object of the request, and its query."""
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path).lstrip("/")
        return path.partition("/")[2], urllib.parse.parse_qs(url.query, keep_blank_values=True)

    def answer(self):
        """Answers any request."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server = self.server
        server.seen.append(self.headers.get("Authorization", ""))
        time.sleep(server.delay)
        key, query = self.key()
        if not key and self.command == "GET":
            return self.list(query.get("prefix", [""])[0], query.get("delimiter", [""])[0])
        if self.command == "POST" and "delete" in query:
            for gone in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                server.objects.pop(gone, None)
            return self.reply(200, b"<DeleteResult/>", Content_Type="application/xml")
        if self.command == "PUT":
            source = urllib.parse.unquote(self.headers.get("x-amz-copy-source", "")).lstrip("/")
            server.objects[key] = server.objects[source.partition("/")[2]] if source else body
            copied = b'<CopyObjectResult><ETag>"e"</ETag></CopyObjectResult>' if source else b""
            return self.reply(200, copied, ETag='"e"', Content_Type="application/xml")
        if self.command == "DELETE":
            server.objects.pop(key, None)
            return self.reply(204)
        if key not in server.objects:
            return self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>", Content_Type="application/xml")
        whole = server.objects[key]
        facts = {"ETag": '"e"', "Last_Modified": "Thu, 26 Nov 2026 00:00:00 GMT"}
        part = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if self.command == "GET" and part:
            first, last = int(part[1]), min(int(part[2]), len(whole) - 1)
            facts["Content_Range"] = f"bytes {first}-{last}/{len(whole)}"
            return self.reply(206, whole[first : last + 1], **facts)
        return self.reply(200, whole, **facts)

    def list(self, prefix, delimiter):
        """Answers a listing."""
        contents, prefixes = [], set()
        for key, value in sorted(self.server.objects.items()):
            rest = key[len(prefix) :]
            if not key.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                prefixes.add(prefix + rest.partition(delimiter)[0] + delimiter)
                continue
            contents.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(value)}</Size><ETag>&quot;e&quot;</ETag>"
                "<LastModified>2026-11-26T00:00:00.000Z</LastModified></Contents>"
            )
        common = [f"<CommonPrefixes><Prefix>{escape(prefix)}</Prefix></CommonPrefixes>" for prefix in sorted(prefixes)]
        text = "".join(["<ListBucketResult><IsTruncated>false</IsTruncated>", *contents, *common, "</ListBucketResult>"])
        self.reply(200, text.encode(), Content_Type="application/xml")

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer


class Server(http.server.ThreadingHTTPServer):
    """The server: its objects by key, how long it waits before each answer, and the signatures that it has seen."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects, self.delay, self.seen = {}, 0, []

    def options(self):
        """The option that names this server."""
        return f"endpoint=http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def serving():
    """A server that runs meanwhile, and credentials for it in the environment."""
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    before = dict(os.environ)
    os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret")
    try:
        yield server
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.shutdown()
        server.server_close()

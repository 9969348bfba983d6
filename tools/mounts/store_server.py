"""A server for S3 on the loopback address, whose answers a check can change. Not a program.

It keeps objects in memory, checks no signature, and speaks what `lightfoot mount s3://` requests. A `Store` may have a hook: a
function of each request, which returns None (the honest answer), another `Answer`, or a function that gets the socket and sends
what it wants.
"""

import collections
import email.utils
import hashlib
import itertools
import re
import socket
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

BUCKET = "bucket"
MIB = 1 << 20
# The longest head of a request.
MAX_HEAD = 64 << 10

# `headers` is a list of pairs; `body` is bytes, or what `Zeros` is. A length is added unless `headers` has one.
Answer = collections.namedtuple("Answer", "status headers body", defaults=((), b""))


class Zeros:
    """The contents of an object that need not exist: so many bytes."""

    def __init__(self, size):
        self.size = size

    def __getitem__(self, part):
        first, last, _ = part.indices(self.size)
        return Zeros(max(0, last - first))

    def blocks(self):
        for at in range(0, self.size, MIB):
            yield bytes(min(MIB, self.size - at))


def size_of(data):
    return data.size if isinstance(data, Zeros) else len(data)


class Object:
    """Contents, with what the store says of them."""

    def __init__(self, data, meta=(), modified=None):
        self.data, self.meta = data, list(meta)
        self.modified = time.time() if modified is None else modified
        sum_of = f"zeros{data.size}".encode() if isinstance(data, Zeros) else data
        self.etag = f'"{hashlib.md5(sum_of, usedforsecurity=False).hexdigest()}"'

    def headers(self):
        at = email.utils.formatdate(self.modified, usegmt=True)
        return [("ETag", self.etag), ("Last-Modified", at), *self.meta]


class Upload:
    """An upload in parts."""

    def __init__(self, key, begun=None, meta=()):
        self.key, self.parts, self.meta = key, {}, list(meta)
        self.begun = time.time() if begun is None else begun


class Request:
    """A request of a client."""

    def __init__(self, head, body):
        line, *rest = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = line.split(" ")
        path, _, query = self.target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}
        self.key = urllib.parse.unquote(path).removeprefix(f"/{BUCKET}").removeprefix("/")
        self.body = body

    @property
    def kind(self):
        """LIST, UPLOADS, PARTS, GET, HEAD, PUT, COPY, PART, PART-COPY, DELETE, ABORT, BEGIN, COMPLETE."""
        has = self.query
        if self.method == "GET":
            return "LIST" if "list-type" in has else "UPLOADS" if "uploads" in has else "PARTS" if "uploadId" in has else "GET"
        if self.method == "PUT":
            of = "PART" if "uploadId" in has else ""
            return "-".join(filter(None, (of, "COPY"))) if "x-amz-copy-source" in self.headers else of or "PUT"
        if self.method == "POST":
            return "BEGIN" if "uploads" in has else "COMPLETE"
        return "ABORT" if self.method == "DELETE" and "uploadId" in has else self.method

    def range_of(self, size, header="range"):
        """The first byte and the end of the range, or None."""
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get(header, ""))
        return found and (int(found[1]), min(size, int(found[2]) + 1 if found[2] else size))

    def __repr__(self):
        return f"{self.kind} {self.key or self.query.get('prefix', '')} {self.headers.get('range', '')}".strip()


def error(status, code):
    return Answer(status, [("Content-Type", "application/xml")], f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())


def iso(at):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at))


def xml(name, *elements):
    """An answer: each element is a pair of its name and its text, or its elements."""

    def text(pairs):
        return "".join(f"<{name}>{text(of) if isinstance(of, list) else escape(str(of))}</{name}>" for name, of in pairs)

    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name}>{text(elements)}</{name}>'
    return Answer(200, [("Content-Type", "application/xml")], body.encode())


def contents(key, size, at="2026-01-02T03:04:05.000Z", etag='"e"'):
    """An object in a listing."""
    return "Contents", [("Key", key), ("LastModified", at), ("ETag", etag), ("Size", size)]


def chunks_of(body):
    return body.blocks() if isinstance(body, Zeros) else [body]


def is_quoted(key):
    # As a form of HTML.
    return urllib.parse.quote_plus(key, safe="/")


def head_of(answer, version="HTTP/1.1", has_body=True):
    """The bytes before the body."""
    lines = [f"{version} {answer.status} Any", *(f"{name}: {value}" for name, value in answer.headers)]
    names = {name.lower() for name, _ in answer.headers}
    if has_body and not names & {"content-length", "transfer-encoding"} and answer.status not in (204, 304):
        lines.append(f"Content-Length: {size_of(answer.body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Store:
    """The server. Its threads end with the process, or at `end`."""

    def __init__(self, objects=(), hook=None):
        self.objects = {key: data if isinstance(data, Object) else Object(data) for key, data in dict(objects).items()}
        self.hook, self.uploads, self.numbers = hook, {}, itertools.count(1)
        self.requests, self.connections, self.received, self.sent = [], 0, 0, 0
        self.changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._streams = set()
        self.endpoint = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def end(self):
        """Ends all connections; nobody can connect any more."""
        self._listener.close()
        for stream in list(self._streams):
            stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def of(self, kind, key=None):
        """The requests of this kind, and of this key, so far."""
        return [request for request in list(self.requests) if request.kind == kind and key in (None, request.key)]

    def wait_for(self, what, limit_s=60):
        """Whether `what` became true of the requests or objects within the limit."""
        with self.changed:
            return self.changed.wait_for(what, limit_s)

    def contents(self):
        """All objects' contents."""
        return {key: object.data for key, object in list(self.objects.items())}

    # ---- connections ----

    def _accept(self):
        while True:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self._streams.add(stream)
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream):
        try:
            with stream, stream.makefile("rb") as reader:
                while self._answer_one(stream, reader):
                    pass
        except (OSError, ValueError):
            pass  # The client left.
        finally:
            self._streams.discard(stream)

    def _answer_one(self, stream, reader):
        """Reads a request and answers it. Whether the connection goes on."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = reader.readline(MAX_HEAD)
            if not line or len(head) > MAX_HEAD:
                return False
            head += line
        request = Request(head[:-4], b"")
        if request.headers.get("expect", "").lower() == "100-continue":
            stream.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.body = reader.read(int(request.headers.get("content-length", 0)))
        with self.changed:
            self.requests.append(request)
            self.received += len(request.body)
            self.changed.notify_all()
        answer = self.hook(request) if self.hook else None
        if answer is None:
            answer = self.honest(request)
        if not isinstance(answer, Answer):
            answer(stream)
            return False
        self.send(stream, request, answer)
        return ("Connection", "close") not in answer.headers

    def send(self, stream, request, answer, version="HTTP/1.1"):
        stream.sendall(head_of(answer, version, request.method != "HEAD"))
        for block in chunks_of(answer.body) if request.method != "HEAD" else ():
            stream.sendall(block)
            self.sent += len(block)

    # ---- answers ----

    def honest(self, request):
        """The answer of an honest server."""
        if not request.headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 "):
            return error(403, "AccessDenied")
        with self.changed:
            answer = getattr(self, "_" + request.kind.lower().replace("-", "_"))(request)
            self.changed.notify_all()
        return answer

    def _list(self, request):
        query = request.query
        prefix, delimiter, most = query.get("prefix", ""), query.get("delimiter", ""), int(query.get("max-keys", 1000))
        after = query.get("continuation-token", query.get("start-after", ""))
        quote = is_quoted if query.get("encoding-type") == "url" else str
        found, token = {}, None
        for key in sorted(self.objects):
            if not key.startswith(prefix):
                continue
            rest, bar, _ = key[len(prefix):].partition(delimiter) if delimiter else (key[len(prefix):], "", "")
            name = prefix + rest + bar
            if name <= after or name in found:
                continue
            if len(found) == most:
                token = list(found)[-1]
                break
            found[name] = bool(bar)
        elements = [("IsTruncated", str(token is not None).lower()), ("EncodingType", "url")]
        elements += [("NextContinuationToken", token)] if token else []
        for name, is_prefix in found.items():
            if is_prefix:
                elements.append(("CommonPrefixes", [("Prefix", quote(name))]))
            else:
                of = self.objects[name]
                elements.append(contents(quote(name), size_of(of.data), iso(of.modified), of.etag))
        return xml("ListBucketResult", *elements)

    def _uploads(self, request):
        prefix = request.query.get("prefix", "")
        uploads = [("Upload", [("Key", of.key), ("UploadId", number), ("Initiated", iso(of.begun))])
                   for number, of in self.uploads.items() if of.key.startswith(prefix)]
        return xml("ListMultipartUploadsResult", ("IsTruncated", "false"), *uploads)

    def _parts(self, request):
        upload = self.uploads.get(request.query["uploadId"])
        if upload is None:
            return error(404, "NoSuchUpload")
        parts = [("Part", [("PartNumber", number), ("LastModified", iso(at)), ("Size", size_of(data))])
                 for number, (data, at) in upload.parts.items()]
        return xml("ListPartsResult", ("IsTruncated", "false"), *parts)

    def _get(self, request):
        found = self.objects.get(request.key)
        if found is None:
            return error(404, "NoSuchKey")
        if request.headers.get("if-match", found.etag) not in (found.etag, "*"):
            return error(412, "PreconditionFailed")
        size = size_of(found.data)
        part = request.range_of(size)
        if part is None:
            return Answer(200, found.headers(), found.data)
        if part[0] >= size:
            return error(416, "InvalidRange")
        of = ("Content-Range", f"bytes {part[0]}-{part[1] - 1}/{size}")
        return Answer(206, [*found.headers(), of], found.data[part[0]:part[1]])

    def _head(self, request):
        found = self.objects.get(request.key)
        if found is None:
            return Answer(404)
        return Answer(200, [*found.headers(), ("Content-Length", size_of(found.data))])

    def _is_refused(self, request, key):
        """Whether a condition of a write does not hold."""
        found = self.objects.get(key)
        wanted = request.headers.get("if-match")
        return "if-none-match" in request.headers and found or wanted is not None and (not found or found.etag != wanted)

    def _meta(self, request):
        return [(name, value) for name, value in request.headers.items() if name.startswith("x-amz-meta-")]

    def _keep(self, key, data, meta):
        self.objects[key] = Object(data, meta)
        return self.objects[key]

    def _put(self, request):
        if self._is_refused(request, request.key):
            return error(412, "PreconditionFailed")
        return Answer(200, [("ETag", self._keep(request.key, request.body, self._meta(request)).etag)])

    def _source(self, request):
        """The object that is copied, or why not."""
        key = urllib.parse.unquote(request.headers["x-amz-copy-source"]).removeprefix("/").removeprefix(f"{BUCKET}/")
        found = self.objects.get(key)
        if found is None:
            return error(404, "NoSuchKey")
        if request.headers.get("x-amz-copy-source-if-match", found.etag) != found.etag:
            return error(412, "PreconditionFailed")
        return found

    def _copy(self, request):
        found = self._source(request)
        if isinstance(found, Answer):
            return found
        if size_of(found.data) > 5 << 30:
            return error(400, "InvalidRequest")
        made = self._keep(request.key, found.data, found.meta)
        return xml("CopyObjectResult", ("ETag", made.etag), ("LastModified", iso(made.modified)))

    def _begin(self, request):
        number = f"upload-{next(self.numbers)}"
        self.uploads[number] = Upload(request.key, meta=self._meta(request))
        return xml("InitiateMultipartUploadResult", ("Bucket", BUCKET), ("Key", request.key), ("UploadId", number))

    def _add(self, request, data):
        upload = self.uploads.get(request.query["uploadId"])
        if upload is None:
            return error(404, "NoSuchUpload")
        upload.parts[int(request.query["partNumber"])] = data, time.time()
        return f'"{hashlib.md5(request.target.encode(), usedforsecurity=False).hexdigest()}"'

    def _part(self, request):
        added = self._add(request, request.body)
        return added if isinstance(added, Answer) else Answer(200, [("ETag", added)])

    def _part_copy(self, request):
        found = self._source(request)
        if isinstance(found, Answer):
            return found
        part = request.range_of(size_of(found.data), "x-amz-copy-source-range") or (0, size_of(found.data))
        if part[1] - part[0] > 5 << 30:
            return error(400, "InvalidRequest")
        added = self._add(request, found.data[part[0]:part[1]])
        return added if isinstance(added, Answer) else xml("CopyPartResult", ("ETag", added), ("LastModified", iso(time.time())))

    def _complete(self, request):
        upload = self.uploads.get(request.query.get("uploadId"))
        if upload is None:
            return error(404, "NoSuchUpload")
        if self._is_refused(request, upload.key):
            return error(412, "PreconditionFailed")
        del self.uploads[request.query["uploadId"]]
        parts = [data for _, (data, _) in sorted(upload.parts.items())]
        is_real = all(isinstance(data, bytes) for data in parts)
        data = b"".join(parts) if is_real else Zeros(sum(map(size_of, parts)))
        made = self._keep(upload.key, data, upload.meta)
        return xml("CompleteMultipartUploadResult", ("Bucket", BUCKET), ("Key", upload.key), ("ETag", made.etag))

    def _abort(self, request):
        return Answer(204) if self.uploads.pop(request.query["uploadId"], None) else error(404, "NoSuchUpload")

    def _delete(self, request):
        self.objects.pop(request.key, None)
        return Answer(204)

"""Downloads and uploads with the requests library, with the retries that its users write.

    transfer.py get URL FILE
    transfer.py put FILE URL
"""

import os
import sys
from urllib.parse import urljoin

import requests

FAILURES = (requests.exceptions.ConnectionError, requests.exceptions.ChunkedEncodingError)
VERSION = {"Upload-Draft-Interop-Version": "8"}


def get(url, path):
    """Continues after each cut at the bytes that are there, as long as the file is the same."""
    tag = None
    total = None
    with open(path, "wb") as file:
        for _ in range(20):
            fields = {"Accept-Encoding": "identity"}
            if file.tell() > 0:
                fields.update({"Range": f"bytes={file.tell()}-", "If-Range": tag})
            try:
                with requests.get(url, headers=fields, stream=True, timeout=20) as response:
                    response.raise_for_status()
                    if response.status_code == 200:
                        file.seek(0)
                        file.truncate()
                        total = int(response.headers["Content-Length"])
                        tag = response.headers["ETag"]
                    for piece in response.iter_content(65536):
                        file.write(piece)
            except FAILURES as failure:
                print(f"cut at {file.tell()}: {failure}", file=sys.stderr)
            if file.tell() == total:
                return
    sys.exit("it did not end")


def put(path, url):
    """Creates an upload without content, then sends what the server does not have."""
    size = os.path.getsize(path)
    fields = {**VERSION, "Upload-Complete": "?0", "Upload-Length": str(size)}
    response = requests.put(url, headers=fields, timeout=20)
    response.raise_for_status()
    upload = urljoin(url, response.headers["Location"])
    for _ in range(20):
        try:
            response = requests.head(upload, headers=VERSION, timeout=20)
            response.raise_for_status()
            if response.headers["Upload-Complete"] == "?1":
                return
            offset = int(response.headers["Upload-Offset"])
            with open(path, "rb") as file:
                file.seek(offset)
                fields = {
                    **VERSION,
                    "Upload-Complete": "?1",
                    "Upload-Offset": str(offset),
                    "Content-Type": "application/partial-upload",
                    "Content-Length": str(size - offset),
                }
                response = requests.patch(upload, headers=fields, data=file, timeout=20)
            response.raise_for_status()
            return
        except FAILURES as failure:
            print(f"cut: {failure}", file=sys.stderr)
    sys.exit("it did not end")


if __name__ == "__main__":
    {"get": get, "put": put}[sys.argv[1]](*sys.argv[2:])

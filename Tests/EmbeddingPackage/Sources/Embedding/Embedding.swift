import Glibc
import TransferServer

/// A program that embeds the server and checks that the server correctly reads requests that libmicrohttpd alone would
/// read wrongly. The program exits with 1 if a request is handled wrongly.
@main
enum Embedding {
    /// The end of the head of a request with chunked content.
    private static let head = "Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    /// Two requests that the handler must not receive. The Content-Length of the first one is malformed.
    private static let smuggled =
        "PUT /inbox/smuggled HTTP/1.1\r\nHost: localhost\r\nContent-Length: +45\r\n\r\n"
        + "GET /inbox/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"

    /// The bytes to send, the expected calls of the handler, and the expected status of the last response.
    private static func cases() -> [(name: String, sent: String, calls: [RecordingHandler.Call], status: Int)] {
        let hello = Array("hello".utf8)
        return [
            (
                "chunk extensions",
                "PUT /inbox/a HTTP/1.1\r\n\(head)2;x=y\r\nhe\r\n3 ;\"z\"\r\nllo\r\n0;last\r\nT: u\r\n\r\n",
                [.init(path: "/inbox/a", content: hello)], 201
            ),
            (
                "pipelined requests",
                "PUT /inbox/b HTTP/1.1\r\n\(head)5\r\nhello\r\n0\r\n\r\nGET /inbox/c HTTP/1.1\r\nHost: localhost\r\n\r\n",
                [.init(path: "/inbox/b", content: hello), .init(path: "/inbox/c", content: [])], 200
            ),
            (
                "NUL instead of the empty line",
                "PUT /inbox/d HTTP/1.1\r\n\(head)5\r\nhello\r\n0\r\n\0\r\n\(smuggled)", [], 400
            ),
            (
                "NUL in a trailer", "PUT /inbox/e HTTP/1.1\r\n\(head)5\r\nhello\r\n0\r\n\0X: y\r\n\r\n\(smuggled)", [],
                400
            ),
            (
                "NUL between requests", "PUT /inbox/f HTTP/1.1\r\n\(head)5\r\nhello\r\n0\r\n\r\n\0\r\n\(smuggled)",
                [.init(path: "/inbox/f", content: hello)], 400
            ),
            ("a malformed Content-Length", smuggled, [], 400),
            (
                "two transfer codings",
                "PUT /inbox/g HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\(head)0\r\n\r\n\(smuggled)", [], 501
            ),
        ]
    }

    static func main() async throws {
        signal(SIGPIPE, SIG_IGN)
        let root = (getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp") + "/onward-embedding-\(getpid())"
        let store = try UploadStore.open(root: root, configuration: StoreConfiguration(minFree: 0))
        defer { store.close() }
        var failures = 0
        for (name, sent, calls, status) in cases() {
            for sendsByteByByte in [false, true] {
                let recorder = RecordingHandler()
                let socket = "\(root)/socket"
                let server = Server(
                    configuration: ServerConfiguration(listeners: [.unix(path: socket)], logLevel: .error),
                    store: store,
                    handlers: [("inbox", recorder)])
                try await server.start()
                let answer = RawClient.exchange(sent, path: socket, sendsByteByByte: sendsByteByByte)
                await server.stop()
                let isRight =
                    recorder.calls == calls && recorder.clientFailures.isEmpty && answer.lastStatus == status
                    && !answer.text.contains("<html")
                if isRight { continue }
                failures += 1
                print(
                    "embedding: \(name), byte by byte: \(sendsByteByByte): \(recorder.calls)"
                        + " \(recorder.clientFailures) \(answer)"
                )
            }
        }
        guard failures == 0 else { exit(1) }
        print("embedding: \(cases().count) cases as expected with libmicrohttpd \(String(cString: libraryVersion()))")
    }

    private static func libraryVersion() -> UnsafePointer<CChar> {
        typealias Function = @convention(c) () -> UnsafePointer<CChar>
        return unsafeBitCast(dlsym(nil, "MHD_get_version"), to: Function.self)()
    }
}

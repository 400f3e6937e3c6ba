import HTTPTransport
import HTTPSemantics
import ResumableUpload

/// Answers the requests of a client in place of servers, for tests of your own code. No connection is made.
///
/// Everything else works as with a server: uploads and downloads resume after interruptions, errors have the same
/// codes, and files and resume data are written.
///
///     let transport = MockTransport { request in
///         guard request.fields["Range"] == "bytes=5-" else {
///             return MockResponse(.ok, ["ETag": "\"a\""], content: "hello, world", cutAt: 5)
///         }
///         let fields: Fields = ["ETag": "\"a\"", "Content-Range": "bytes 5-11/12"]
///         return MockResponse(.partialContent, fields, content: ", world")
///     }
///     let client = TransferClient(configuration, transport: transport)
public struct MockTransport: Sendable {
    let answer: @Sendable (MockRequest) async throws -> MockResponse

    /// A transport that calls `answer` for every request.
    /// - Parameter answer: called concurrently if several transfers run. If it throws a ``MockFailure``, the request
    ///   ends without a response; any other error has the effect of ``MockFailure/connectionLost``. The task of the
    ///   call is canceled when the client no longer needs a response.
    public init(_ answer: @escaping @Sendable (MockRequest) async throws -> MockResponse) {
        self.answer = answer
    }

    /// A transport that answers each request with the next response, after it has read the content of the request.
    /// After the last response, all requests fail with ``MockFailure/cannotConnect``.
    /// - Parameter responses: the responses, in the order of the requests.
    public init(responses: [MockResponse]) {
        self.init { request in
            guard request.number <= responses.count else { throw MockFailure.cannotConnect }
            _ = try await request.readContent()
            return responses[request.number - 1]
        }
    }
}

/// A request that a ``MockTransport`` answers.
public struct MockRequest: Sendable {
    /// The method.
    public let method: Method
    /// The absolute URI.
    public let uri: String
    /// The fields that are sent, without those of the framing, such as `Content-Length`.
    public let fields: Fields
    /// The number of the request, from 1, among all requests of the client.
    public let number: Int
    let exchange: MockExchange

    /// Reads the next bytes of the request's content. As with a server, the content of some uploads arrives after an
    /// interim response 104, or after ``TransferClient/Configuration/interimResponseTimeout``.
    /// - Parameter limit: the maximum number of bytes.
    /// - Returns: fewer bytes only at the end of the content.
    /// - Throws: an error if the request has ended. Let the closure of the transport throw it.
    public func readContent(atMost limit: Int = .max) async throws -> [UInt8] {
        try await exchange.readContent(atMost: limit)
    }

    /// Sends an interim response.
    /// - Parameters:
    ///   - status: 100 to 199, except 101.
    ///   - fields: the fields of the response.
    /// - Throws: an error if the request has ended. Let the closure of the transport throw it.
    public func sendInterim(_ status: Status, _ fields: Fields = [:]) throws {
        try exchange.send(status, fields)
    }
}

/// The final response of a ``MockTransport``.
public struct MockResponse: Sendable, Hashable {
    /// The status, from 200 on.
    public var status: Status
    /// The fields. `Content-Length` is added unless they contain `Content-Length` or `Transfer-Encoding`.
    public var fields: Fields
    /// The content. It is not sent in the response to a HEAD request.
    public var content: [UInt8]
    /// The number of bytes of the content after which the connection is lost; `nil`: it is not lost.
    public var cutAt: Int?

    /// A response with these values.
    public init(_ status: Status, _ fields: Fields = [:], content: [UInt8] = [], cutAt: Int? = nil) {
        self.status = status
        self.fields = fields
        self.content = content
        self.cutAt = cutAt
    }

    /// A response whose content is a text in UTF-8.
    public init(_ status: Status, _ fields: Fields = [:], content: String, cutAt: Int? = nil) {
        self.init(status, fields, content: Array(content.utf8), cutAt: cutAt)
    }
}

/// The reason why a request to a ``MockTransport`` gets no response.
public enum MockFailure: Error, Sendable, Hashable, CaseIterable {
    /// The address of the host was not found.
    case hostNotFound
    /// No connection was made.
    case cannotConnect
    /// No secure connection was made.
    case insecureConnection
    /// The connection was lost.
    case connectionLost
    /// No byte was sent or received during the stall timeout.
    case timedOut

    var transportFailure: TransportFailure {
        switch self {
        case .hostNotFound: .resolve
        case .cannotConnect: .connect(to: nil, reason: "a mock failure")
        case .insecureConnection: .tls("a mock failure")
        case .connectionLost: .connectionLost(code: 0, message: "a mock failure")
        case .timedOut: .stalled
        }
    }
}

extension TransferClient {
    /// Creates a client for tests, which makes no connections.
    /// - Parameters:
    ///   - configuration: the settings of all transfers. Settings of connections have no effect.
    ///   - transport: answers the requests.
    public convenience init(_ configuration: Configuration = .init(), transport: MockTransport) {
        self.init(configuration, engine: MockEngine(transport))
    }
}

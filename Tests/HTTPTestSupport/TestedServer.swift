import ConformanceKit
import TestSupport
import Testing

/// A server with files below `/files/`: a program, or a server in the process of the tests.
package protocol TestedServer: AnyObject {
    /// Sends a request and returns its final response.
    func exchange(_ request: Request, within limit: Duration) throws -> Response
}

extension TestedServer {
    package func exchange(_ request: Request) throws -> Response { try exchange(request, within: .seconds(60)) }

    /// Creates an upload whose first bytes are `content`, and returns its location.
    package func begin(
        _ version: Interop? = .v8, _ target: String = "/files/file.bin", _ content: [UInt8] = [], length: Int? = nil,
        _ fields: [(String, String)] = []
    ) throws -> String {
        var request = Request.creation(version, "PUT", target, complete: false, length: length, .bytes(content))
        request.fields += fields
        let response = try exchange(request)
        guard response.status == 201, let location = response.location else {
            throw TestFailure("creation answered by \(response)")
        }
        return location
    }

    /// Creates an upload of `/files/file.bin` with a token. Its first bytes are `Payload.bytes(10)`.
    package func begin(token: String) throws -> String {
        try begin(.v8, "/files/file.bin", Payload.bytes(10), [("Authorization", "Bearer " + token)])
    }

    /// Retrieves the state of an upload.
    package func retrieve(_ location: String, _ version: Interop? = .v8) throws -> Response {
        try exchange(.retrieval(version, location))
    }

    /// Publishes a file by a plain PUT.
    @discardableResult
    package func publish(_ bytes: [UInt8], as name: String) throws -> Response {
        let response = try exchange(Request("PUT", "/files/" + name, [], .bytes(bytes)))
        try #require(response.isSuccessful, "\(response)")
        return response
    }

    /// Sends `GET` for a file.
    package func download(_ name: String, _ fields: [(String, String)] = []) throws -> Response {
        try exchange(Request("GET", "/files/" + name, fields))
    }
}

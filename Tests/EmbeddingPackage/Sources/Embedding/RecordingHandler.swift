import Synchronization
import TransferServer

/// A handler that records the requests that it receives. After each upload it also runs ``OtherClient``, to check that
/// the server does not change the data that other sockets of the process receive.
final class RecordingHandler: TargetHandler {
    struct Call: Equatable, Sendable {
        var path: String
        var content: [UInt8]
    }

    private let received = Mutex<[Call]>([])
    private let failures = Mutex<[String]>([])

    var calls: [Call] { received.withLock { $0 } }
    /// The errors of ``OtherClient``, which runs on the thread of libmicrohttpd; empty if its data arrives unchanged.
    var clientFailures: [String] { failures.withLock { $0 } }

    func methods(of target: Target) -> [Method] { [.get, .put] }
    func accept(_ proposal: UploadProposal) -> Acceptance { .accept }

    func complete(_ upload: ReceivedUpload) throws -> Response {
        var content = [UInt8](repeating: 0, count: Int(upload.length))
        let count = try content.withUnsafeMutableBytes { try upload.read(into: $0, at: 0) }
        received.withLock { $0.append(Call(path: upload.target.path, content: Array(content.prefix(count)))) }
        let problem = OtherClient.exchange()
        if let problem { failures.withLock { $0.append(problem) } }
        return Response(status: 201)
    }

    func respond(to request: TargetRequest) -> Response {
        received.withLock { $0.append(Call(path: request.target.path, content: [])) }
        return Response(status: 200, content: Array("served\n".utf8))
    }
}

import Foundation
import HTTPSemantics
import SystemCalls
import TransferServer

/// A program that is run once for each file, with the file as its standard input. The exit status has the meaning that
/// it has for clamscan(1): 0 accepts the file, and 1 with a reason on standard output refuses it. If the program ends
/// in any other way, there is no verdict.
struct ProgramChecker: Checker {
    let path: String
    let timeout: Duration

    func verdict(on upload: ReceivedUpload) throws(CheckFailure) -> PublicationVerdict {
        let file: FileDescriptor?
        do throws(StoreError) { file = try upload.openForReading() } catch {
            throw CheckFailure("was not started, because the file cannot be opened: \(error)")
        }
        let input: ProgramRun.Input =
            file.map { .file($0) } ?? .stream { [upload] buffer, offset in try? upload.read(into: buffer, at: offset) }
        let run = ProgramRun(path, variables: Self.variables(of: upload), input: input, timeout: timeout)
        let result = run.run(isCanceled: { Task.isCancelled })
        let output = result.output.trimmed
        switch result.outcome {
        case .ended(.exited(0)):
            guard output.first == UInt8(ascii: "{") else { return .accept }
            return try Self.acceptance(output)
        case .ended(.exited(1)):
            // Interpreters also end with 1 if a script fails, and then write to standard error only.
            guard !output.isEmpty else {
                throw CheckFailure("\(result.summary); a refusal needs a reason on standard output")
            }
            return .refuse((RefusalDocument(json: output) ?? RefusalDocument(text: output)).response)
        default: throw CheckFailure(result.summary)
        }
    }

    private static func variables(of upload: ReceivedUpload) -> [(name: String, value: String)] {
        let principal = upload.principal == Identity.anonymous.principal ? nil : upload.principal
        let values: [(String, String?)] = [
            ("METHOD", upload.method.rawValue), ("TARGET", upload.target.path), ("UPLOAD", upload.idempotencyKey),
            ("LENGTH", "\(upload.length)"), ("PRINCIPAL", principal), ("DIGEST", upload.verifiedDigest),
            ("CONTENT_TYPE", upload.fields["Content-Type"]?.repairedFieldText),
            ("CONTENT_DISPOSITION", upload.fields["Content-Disposition"]?.repairedFieldText),
        ]
        return values.compactMap { name, value in value.map { ("ONWARD_CHECK_" + name, $0) } }
    }

    private struct Acceptance: Decodable {
        var target: String?
    }

    /// - Parameter output: a JSON object. Its optional member `target` is another path for the file.
    private static func acceptance(_ output: [UInt8]) throws(CheckFailure) -> PublicationVerdict {
        guard let acceptance = try? JSONDecoder().decode(Acceptance.self, from: Data(output)) else {
            throw CheckFailure(
                "accepted the file, but its output is not a JSON object, or the member 'target' is not a string")
        }
        return acceptance.target.map { .acceptAs($0) } ?? .accept
    }
}

extension [UInt8] {
    /// The bytes without white space at both ends.
    fileprivate var trimmed: [UInt8] {
        let isSpace: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        return Array(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
    }
}

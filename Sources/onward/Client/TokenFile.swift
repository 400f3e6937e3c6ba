import Foundation
import HTTPSemantics
import SystemCalls

/// A file with a bearer token on its first line.
struct TokenFile: Sendable {
    let path: FilePath

    /// What `Authorization` says with the token that the file has now.
    func authorization() throws(CommandFailure) -> String {
        let content: [UInt8]
        do throws(Errno) {
            let file = try FileDescriptor.open(path, [.readOnly, .nonBlocking])
            content = try TokenFile.beginning(of: file)
        } catch {
            throw CommandFailure(.inputOutput, "token-file", "the token file \(path) cannot be read: \(error)")
        }
        let line = content.prefix { $0 != 0x0A && $0 != 0x0D }
        let token = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespaces)
        guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw CommandFailure(
                .usage, "token-file", "the first line of the token file \(path) has to be a token and nothing else")
        }
        return "Bearer " + token
    }

    private static func beginning(of file: FileDescriptor) throws(Errno) -> [UInt8] {
        var failure: Errno?
        let bytes = [UInt8](unsafeUninitializedCapacity: 16 << 10) { buffer, count in
            do throws(Errno) {
                count = try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}

import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls

extension ClientSettings {
    /// The client for these settings.
    /// - Parameter report: receives the head of every message, with `--verbose`.
    func client(for report: TransferReport? = nil) throws(CommandFailure) -> TransferClient {
        var configuration = TransferClient.Configuration()
        configuration.creation = isPlain ? .plain : isCareful ? .careful : .automatic
        configuration.dialect = dialect
        configuration.maximumRequestContentLength = appendSize
        if let retries { configuration.retry.maximumRetriesWithoutProgress = retries }
        if let stallTimeout { configuration.stallTimeout = .seconds(stallTimeout) }
        configuration.rateLimit = rateLimit
        configuration.caPath = caFile
        configuration.sendsDigest = sendsDigest
        // Tickets are not necessary, because the command locks its state file.
        configuration.issuesTickets = false
        if isVerbose, let report {
            configuration.onMessage = { record in report.head(record) }
        }
        if let caFile, !ClientSettings.isReadable(caFile) {
            throw CommandFailure(.inputOutput, "cacert", "the certificates in \(caFile) cannot be read")
        }
        if let tokenFile {
            let file = TokenFile(path: tokenFile)
            // An unusable file is reported before anything else happens.
            _ = try file.authorization()
            configuration.authorize = { request in
                let authorization = try file.authorization()
                request.fields.set("Authorization", authorization)
            }
        }
        return TransferClient(configuration)
    }

    /// The request of `data`, with the fields of these settings.
    func request(_ data: ResumeData) -> TransferRequest {
        var request = data.request
        for field in fields { request.fields.remove(field.name) }
        for field in fields { request.fields.append(field.name, field.value) }
        return request
    }

    private static func isReadable(_ path: FilePath) -> Bool {
        (try? FileDescriptor.open(path, [.readOnly, .nonBlocking])) != nil
    }

    /// The settings that a state file stores.
    var saved: SavedTransfer.Options {
        SavedTransfer.Options(tokenFile: tokenFile, caFile: caFile, appendSize: appendSize)
    }
}

/// A file with a bearer token on its first line.
struct TokenFile: Sendable {
    let path: FilePath

    /// The value of `Authorization` with the token that the file contains now.
    func authorization() throws(CommandFailure) -> String {
        let content: [UInt8]
        do throws(Errno) {
            let file = try FileDescriptor.open(path, [.readOnly, .nonBlocking])
            content = try TokenFile.beginning(of: file)
        } catch {
            throw CommandFailure(.inputOutput, "token-file", "the token file \(path) cannot be read: \(error)")
        }
        let line = content.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
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

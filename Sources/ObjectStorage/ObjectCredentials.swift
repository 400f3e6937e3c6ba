import SystemCalls

/// The source of the keys with which requests to an object storage are signed.
///
/// If `AWS_ACCESS_KEY_ID` is set, the keys are `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
/// Otherwise they are in the profile `AWS_PROFILE` (without it `default`) of the file `AWS_SHARED_CREDENTIALS_FILE`
/// (without it `~/.aws/credentials`), which is read again after it has changed.
package final class ObjectCredentials: Sendable {
    private enum Source {
        case environment(AccessKeys)
        case file(FilePath, profile: String)
        case missing(String)
    }

    private struct State {
        var status: FileStatus?
        var keys: AccessKeys?
    }

    private let source: Source
    private let state = Monitor(State())

    /// - Parameter environment: the variables of the process.
    package init(environment: [String: String]) {
        if let identifier = environment["AWS_ACCESS_KEY_ID"], !identifier.isEmpty {
            guard let secret = environment["AWS_SECRET_ACCESS_KEY"], !secret.isEmpty else {
                source = .missing("AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not")
                return
            }
            let token = environment["AWS_SESSION_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
            source = .environment(AccessKeys(identifier: identifier, secret: secret, sessionToken: token))
            return
        }
        let profile = environment["AWS_PROFILE"].flatMap { $0.isEmpty ? nil : $0 } ?? "default"
        if let path = environment["AWS_SHARED_CREDENTIALS_FILE"], !path.isEmpty {
            source = .file(FilePath(path), profile: profile)
        } else if let home = environment["HOME"], !home.isEmpty {
            source = .file(FilePath(home + "/.aws/credentials"), profile: profile)
        } else {
            source = .missing("none of AWS_ACCESS_KEY_ID, AWS_SHARED_CREDENTIALS_FILE and HOME is set")
        }
    }

    /// The current keys. If the file cannot be read any more, or lacks the profile, the keys that were read last are
    /// used.
    func keys() throws(ObjectError) -> AccessKeys {
        switch source {
        case .environment(let keys): return keys
        case .missing(let reason): throw .refused(status: 0, code: "", message: "there are no credentials: \(reason)")
        case .file(let path, let profile): return try keys(in: path, profile)
        }
    }

    private func keys(in path: FilePath, _ profile: String) throws(ObjectError) -> AccessKeys {
        let previous = state.withLock { $0 }
        do throws(Errno) {
            if let keys = previous.keys, try path.status() == previous.status { return keys }
            let file = try FileDescriptor.open(path, .readOnly)
            // A change during the reading is noticed at the next call.
            let status = try file.status()
            let text = String(decoding: try file.content(atMost: 1 << 20), as: UTF8.self)
            if let keys = Self.keys(in: text, profile) {
                state.withLock { $0 = State(status: status, keys: keys) }
                return keys
            }
        } catch {
            if let keys = previous.keys { return keys }
            throw .refused(status: 0, code: "", message: "the credentials file \(path) cannot be read: \(error.text)")
        }
        if let keys = previous.keys { return keys }
        throw .refused(
            status: 0, code: "",
            message: "the credentials file \(path) has no aws_access_key_id and aws_secret_access_key"
                + " in the profile '\(profile)'")
    }

    /// The keys in a file with lines `[PROFILE]` and `NAME = VALUE`.
    static func keys(in text: String, _ profile: String) -> AccessKeys? {
        var isInProfile = false
        var values: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline).map(trimmed) {
            if line.hasPrefix("#") || line.hasPrefix(";") { continue }
            if line.hasPrefix("["), line.hasSuffix("]") {
                isInProfile = trimmed(line.dropFirst().dropLast()) == profile
            } else if isInProfile, let separator = line.firstIndex(of: "=") {
                values[trimmed(line[..<separator]).lowercased()] = trimmed(line[line.index(after: separator)...])
            }
        }
        guard let identifier = values["aws_access_key_id"], let secret = values["aws_secret_access_key"],
            !identifier.isEmpty, !secret.isEmpty
        else { return nil }
        let token = values["aws_session_token"].flatMap { $0.isEmpty ? nil : $0 }
        return AccessKeys(identifier: identifier, secret: secret, sessionToken: token)
    }

    private static func trimmed(_ text: Substring) -> String {
        let start = text.drop(while: \.isWhitespace)
        return String(start.prefix(start.count - start.reversed().prefix(while: \.isWhitespace).count))
    }
}

import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// The messages about a transfer, for people.
enum ProgressMessages {
    static func begun(_ identity: TransferIdentity, total: Int64?) -> String {
        let name = DisplayText.printable(identity.fileName.description)
        let size = total.map { " (\(Amount.bytes($0)))" } ?? ""
        let url = DisplayText.printable(TransferURL.shown(identity.url))
        return switch identity.kind {
        case .put: "Sending \(name)\(size) to \(url)"
        case .get: "Receiving \(url) as \(DisplayText.printable(identity.path.description))"
        }
    }

    static func interrupted(_ error: TransferError, retryIn: Duration) -> String {
        let seconds = retryIn.inSeconds
        let when = seconds < 0.5 ? "now" : "in \(Amount.duration(seconds))"
        let reason = error.response.flatMap { ResponseReason.of($0) }.map { " Reason: \($0)" } ?? ""
        return "Interrupted: \(DisplayText.printable(error.message))\(reason) Trying again \(when)."
    }

    static func resumed(at position: TransferPosition) -> String { "Resuming at \(position.text)." }

    /// - Parameter seconds: the duration of this run.
    static func completed(
        _ identity: TransferIdentity, _ position: TransferPosition, status: Int, location: String?,
        isResponseLost: Bool,
        moved: Int64, seconds: Double
    ) -> String {
        let name = DisplayText.printable(identity.fileName.description)
        let speed = moved > 0 && seconds >= 0.1 ? ", \(Amount.rate(Double(moved) / seconds))" : ""
        let amount = "\(Amount.bytes(position.moved)) in \(Amount.elapsed(seconds))\(speed)"
        switch identity.kind {
        case .put:
            let place = DisplayText.printable(TransferURL.shown(location ?? identity.url))
            let answer = isResponseLost ? "the server has the complete file, but its response was lost" : "\(status)"
            return "Sent \(name): \(place) (\(answer); \(amount))"
        case .get:
            return "Received \(DisplayText.printable(identity.path.description)) (\(amount))"
        }
    }

    /// The message about a file that an earlier run has sent.
    static func sentEarlier(_ identity: TransferIdentity, status: Int, location: String?) -> String {
        let place = DisplayText.printable(TransferURL.shown(location ?? identity.url))
        return
            "\(DisplayText.printable(identity.fileName.description)) was already sent by an earlier run: \(place) (\(status))"
    }

    /// The message that describes how to resume after an interruption.
    /// - Parameter reference: the name or path of the state; `nil` if no state is saved.
    static func advice(_ position: TransferPosition, reference: FilePath?) -> String {
        guard let reference else { return "No state is saved: the same command starts again from the beginning." }
        return "\(position.keptText). Run the same command again to resume, or: onward resume \(shellWord(reference))"
    }

    /// A sentence about the state that is kept of a transfer that has failed permanently.
    static func kept(_ data: ResumeData, reference: FilePath) -> String {
        guard data.kind == .download else {
            return "The state is kept: the same command tries to resume; --restart starts again from the beginning."
        }
        let place = data.partialPath.map { " in \(DisplayText.printable($0.description))" } ?? ""
        return """
            The received bytes are kept\(place).
            The same command tries to resume, --restart starts again from the beginning, 'onward cancel \(shellWord(reference))' discards the transfer.
            """
    }

    /// Returns a path as a word of a shell command.
    static func shellWord(_ path: FilePath) -> String {
        guard let text = path.text, text == DisplayText.printable(text) else {
            // Bytes that a terminal would interpret or could not show are escaped as bash, zsh and others read them.
            let escaped = FilePath(path.bytes.flatMap { #"\'"#.utf8.contains($0) ? [UInt8(ascii: "\\"), $0] : [$0] })
            return "$'" + DisplayText.printable(escaped.description) + "'"
        }
        let plain = text.unicodeScalars.allSatisfy { scalar in
            scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                || "/._-+,:@%".unicodeScalars.contains(scalar)
        }
        return plain && !text.isEmpty ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}

extension Duration {
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}

/// The head of a message as lines for people.
enum HeadLines {
    static func of(_ record: TransferRecord) -> [String] {
        let sign: String
        let first: String
        switch record.message {
        case .request(let method, let uri):
            sign = ">"
            first = "\(method.rawValue) \(uri)"
        case .response(let status, let version):
            sign = "<"
            let name = version.hasPrefix("HTTP") ? version : "HTTP/" + version
            first = "\(name) \(status.rawValue) \(status.reasonPhrase)"
        }
        return ([first] + record.fields.map { "\($0.name): \($0.value)" }).map {
            sign + " " + DisplayText.printable($0)
        }
    }
}

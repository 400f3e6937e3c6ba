import Foundation
import HTTPSemantics
import SystemCalls

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

/// The users and passwords of hosts in `~/.netrc`, as curl reads them.
struct NetrcFile: Sendable, Hashable {
    /// The entry of a host.
    struct Entry: Sendable, Hashable {
        var user = ""
        var password = ""
    }

    private var hosts: [String: Entry] = [:]
    /// The entry for all other hosts.
    private var other: Entry?

    /// Reads `$HOME/.netrc`. If there is no such file, the result has no entries.
    static func read() throws(CommandFailure) -> NetrcFile {
        guard let home = FilePath.environment("HOME"), home.isAbsolute else { return NetrcFile(parsing: "") }
        let path = home.appending(".netrc")
        do throws(Errno) {
            let file = try FileDescriptor.open(path, [.readOnly, .nonBlocking])
            return NetrcFile(parsing: String(decoding: try file.content(atMost: 1 << 20), as: UTF8.self))
        } catch {
            if error == .noSuchFile { return NetrcFile(parsing: "") }
            throw CommandFailure(.inputOutput, "netrc", "the file \(path) cannot be read: \(error)")
        }
    }

    /// Parses words that are separated by white space. A word in quotation marks may contain white space, and the
    /// escapes `\"`, `\\`, `\n`, `\r` and `\t`. A line that begins with `#` is a comment. Of several entries of one host the first
    /// one counts.
    init(parsing text: String) {
        var words = NetrcWords(text)
        /// The name of the current host; empty for the default entry.
        var host: String?
        var entry = Entry()
        func end(_ file: inout NetrcFile) {
            guard let host, entry != Entry() else { return }
            if host.isEmpty {
                file.other = file.other ?? entry
            } else if file.hosts[host] == nil {
                file.hosts[host] = entry
            }
        }
        while let word = words.next() {
            switch word {
            case "machine", "default":
                end(&self)
                host = word == "default" ? "" : words.next()?.lowercased()
                entry = Entry()
            case "login": entry.user = words.next() ?? ""
            case "password": entry.password = words.next() ?? ""
            case "account": _ = words.next()
            case "macdef": words.skipMacro()
            default: break
            }
        }
        end(&self)
    }

    func entry(of host: String) -> Entry? { hosts[host.lowercased()] ?? other }

    /// The value of `Authorization` (RFC 7617) for the host of a URI; `nil` if it has no entry.
    func authorization(for uri: String) -> String? {
        guard let host = URLComponents(string: uri)?.host?.filter({ $0 != "[" && $0 != "]" }),
            let entry = entry(of: host)
        else { return nil }
        return BasicCredentials.authorization("\(entry.user):\(entry.password)")
    }
}

/// The words of a netrc file.
private struct NetrcWords {
    private var remaining: Substring.UnicodeScalarView
    private var isAtLineStart = true

    init(_ text: String) { remaining = text.unicodeScalars[...] }

    mutating func next() -> String? {
        while let first = remaining.first, first.properties.isWhitespace || (first == "#" && isAtLineStart) {
            if first == "#" {
                remaining = remaining.drop { $0 != "\n" }
            } else {
                isAtLineStart = first == "\n" || (isAtLineStart && first != "\r")
                remaining.removeFirst()
            }
        }
        guard let first = remaining.first else { return nil }
        isAtLineStart = false
        if first == "\"" { return quoted() }
        let word = remaining.prefix { !$0.properties.isWhitespace }
        remaining = remaining.dropFirst(word.count)
        return String(word)
    }

    private mutating func quoted() -> String {
        remaining.removeFirst()
        var word = String.UnicodeScalarView()
        while let scalar = remaining.popFirst(), scalar != "\"" {
            guard scalar == "\\", let escaped = remaining.popFirst() else {
                word.append(scalar)
                continue
            }
            switch escaped {
            case "n": word.append("\n")
            case "r": word.append("\r")
            case "t": word.append("\t")
            default: word.append(escaped)
            }
        }
        return String(word)
    }

    /// Skips the definition of a macro, which ends with an empty line.
    mutating func skipMacro() {
        remaining = remaining.drop { $0 != "\n" }.dropFirst()
        while !remaining.isEmpty, remaining.first != "\n" {
            remaining = remaining.drop { $0 != "\n" }.dropFirst()
        }
        isAtLineStart = true
    }
}

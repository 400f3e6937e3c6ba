import CommandLineInterface
import ConformanceKit
import SystemCalls
import TLS

/// The parsers of values that several commands have in common.
enum ConnectionValues {
    /// Reads the name of a file of PEM certificates.
    static func trust(_ path: String) throws(OptionError) -> TLSTrust {
        do throws(Errno) {
            _ = try FileDescriptor.open(path, [.readOnly]).content(atMost: 16 << 20)
        } catch {
            throw OptionError("'\(path)' cannot be read: \(error)")
        }
        let trust = TLSTrust.authorities(path: path)
        do throws(TLSClientConnection.Failure) { try TLSClientConnection.checkCertificates(of: trust) } catch {
            throw OptionError("'\(path)' cannot be used: \(error)")
        }
        return trust
    }

    /// Reads a method.
    static func method(_ text: String) throws(OptionError) -> String {
        guard Request.isMethod(text) else { throw OptionError("'\(text)' is not a method such as POST or PUT") }
        return text
    }

    /// Reads a field of the form `Name: value`.
    static func field(_ text: String) throws(OptionError) -> (String, String) {
        guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
            throw OptionError("'\(text)' is not a field of the form 'Name: value'")
        }
        return (String(text[..<colon]), String(text[text.index(after: colon)...].drop { $0 == " " }))
    }
}

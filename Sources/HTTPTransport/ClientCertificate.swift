/// A certificate with which the client authenticates itself to a server (RFC 8446 section 4.4.2), and its private key.
///
/// The files are read when a connection is made, so they can be replaced at any time.
public struct ClientCertificate: Sendable, Hashable {
    /// The path of a PEM file with the certificate, followed by the intermediate certificates, if there are any.
    public var certificateFile: String
    /// The path of a PEM file with the private key. It can be the same file.
    public var keyFile: String
    /// The password of the private key; `nil` if the key is not encrypted.
    public var password: String?

    /// Creates a certificate from files. The files are not opened here: if a file cannot be used, transfers fail with
    /// `insecureConnection`.
    /// - Parameters:
    ///   - certificateFile: see ``certificateFile``.
    ///   - keyFile: see ``keyFile``; `nil` if the key is in `certificateFile`.
    ///   - password: see ``password``.
    public init(certificateFile: String, keyFile: String? = nil, password: String? = nil) {
        self.certificateFile = certificateFile
        self.keyFile = keyFile ?? certificateFile
        self.password = password
    }
}

extension ClientCertificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The path of the certificate.
    public var description: String { certificateFile }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Shows only the paths, so that a dump does not reveal the password.
    public var customMirror: Mirror {
        Mirror(self, children: ["certificateFile": certificateFile, "keyFile": keyFile])
    }
}

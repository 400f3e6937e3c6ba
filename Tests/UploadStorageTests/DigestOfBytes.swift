import Digests

/// The digest of all bytes.
func digest(_ bytes: [UInt8], _ algorithm: Algorithm = .sha256) -> [UInt8] {
    var digest = RunningDigest(algorithm)
    bytes.withUnsafeBytes { digest.update($0) }
    return digest.finalized()
}

func digest(_ text: String, _ algorithm: Algorithm = .sha256) -> [UInt8] { digest(Array(text.utf8), algorithm) }

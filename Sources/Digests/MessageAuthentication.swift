import CNettle

/// Message authentication codes (RFC 2104).
package enum MessageAuthentication {
    /// Computes the HMAC-SHA256 of `bytes`.
    /// - Returns: 32 bytes.
    package static func sha256(of bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        var context = hmac_sha256_ctx()
        nettle_hmac_sha256_set_key(&context, key.count, key)
        nettle_hmac_sha256_update(&context, bytes.count, bytes)
        var code = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_SIZE))
        nettle_hmac_sha256_digest(&context, code.count, &code)
        return code
    }
}

/// MD5 (RFC 1321), only for protocols that require it as a checksum.
package enum MD5 {
    /// Computes the MD5 digest of `bytes`.
    /// - Returns: 16 bytes.
    package static func digest(of bytes: [UInt8]) -> [UInt8] {
        var context = md5_ctx()
        nettle_md5_init(&context)
        nettle_md5_update(&context, bytes.count, bytes)
        var digest = [UInt8](repeating: 0, count: Int(MD5_DIGEST_SIZE))
        nettle_md5_digest(&context, digest.count, &digest)
        return digest
    }
}

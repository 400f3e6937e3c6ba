import CNettle

/// Message authentication codes (RFC 2104).
package enum MessageAuthentication {
    /// HMAC-SHA256.
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

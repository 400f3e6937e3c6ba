import Digests
import FoundationEssentials
import HTTPSemantics

/// The cookie with which a browser reads files for a short time: downloads, images and videos cannot send a bearer token.
///
/// The value is `PRINCIPAL:EXPIRY:TOKEN:CODE`. Servers store nothing for it; each server with the same token file accepts
/// it:
/// - TOKEN is the bearer token, encrypted with a key that is derived from its digest in the list of tokens. So the cookie
///   alone does not reveal the token, and it is invalid as soon as the token is removed from the list.
/// - CODE authenticates the principal and the expiry with the bearer token as the key. So the list, which has only digests,
///   is not sufficient to create a cookie.
package enum SessionCookie {
    static let name = "onward-session"
    /// The seconds for which a cookie is valid.
    static let lifetime: Int64 = 900
    /// The maximum length of a token in bytes: browsers ignore cookies of more than 4096 bytes.
    static let maxTokenLength = 1024

    // MARK: Values

    /// The value for a bearer token; `nil` if the token is too long.
    /// - Parameter expiry: seconds since 1970.
    static func value(forToken token: String, of principal: String, expiry: Int64) -> String? {
        guard token.utf8.count <= maxTokenLength else { return nil }
        let bytes = Array(token.utf8)
        let encrypted = masked(bytes, with: TokenList.digest(token))
        let code = code(principal, expiry, key: bytes)
        return [principal, String(expiry), encrypted.base64, code.base64].joined(separator: ":")
    }

    /// The token of the list for which the request has a valid cookie; `nil` if there is none.
    /// - Parameter now: seconds since 1970.
    static func token(in fields: Fields, of list: TokenList, now: Int64) -> TokenList.Token? {
        for line in fields.values("Cookie") {
            for pair in pairs(line) where name(of: pair) == name {
                let value = pair.drop { $0 != UInt8(ascii: "=") }.dropFirst()
                if let token = token(for: String(Substring(value)), of: list, now: now) { return token }
            }
        }
        return nil
    }

    private static func token(for value: String, of list: TokenList, now: Int64) -> TokenList.Token? {
        let parts = value.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 4, let expiry = Int64(parts[1]), String(expiry) == parts[1], now < expiry,
            let encrypted = Data(canonicalBase64: parts[2]), encrypted.count <= maxTokenLength,
            let code = Data(canonicalBase64: parts[3])
        else { return nil }
        return list.tokens.first { token in
            guard token.name == parts[0] else { return false }
            let bytes = masked(Array(encrypted), with: token.digest)
            // Both comparisons are always made, so that the duration does not show which one has failed.
            let isToken = TokenList.isEqual(TokenList.digest(bytes), token.digest)
            let isAuthentic = TokenList.isEqual(self.code(token.name, expiry, key: bytes), Array(code))
            return isToken && isAuthentic
        }
    }

    private static func code(_ principal: String, _ expiry: Int64, key: [UInt8]) -> [UInt8] {
        MessageAuthentication.sha256(of: Array("onward-session code \(principal) \(expiry)".utf8), key: key)
    }

    /// Encrypts or decrypts with a stream of HMAC-SHA256 values. A key encrypts only one text, the token whose digest it is.
    private static func masked(_ bytes: [UInt8], with key: [UInt8]) -> [UInt8] {
        var result = bytes
        for start in stride(from: 0, to: bytes.count, by: 32) {
            let mask = MessageAuthentication.sha256(of: Array("onward-session mask \(start)".utf8), key: key)
            for index in start..<min(start + 32, bytes.count) { result[index] ^= mask[index - start] }
        }
        return result
    }

    // MARK: Fields

    /// The value of `Set-Cookie`; without a value the browser removes the cookie.
    static func field(_ value: String?, path: String, isSecure: Bool) -> String {
        // A semicolon would end the path. A browser does not send a cookie whose path has another spelling.
        let path = path.replacing(";", with: "%3B")
        return "\(name)=\(value ?? ""); Path=\(path); Max-Age=\(value == nil ? 0 : lifetime); HttpOnly; SameSite=Strict"
            + (isSecure ? "; Secure" : "")
    }

    /// Whether a request may use the cookie: it only reads, has no other credentials, and no page of another origin has
    /// caused it. Browsers send `Origin` with reads only to other origins. Old browsers do not send `Sec-Fetch-Site`; then
    /// `SameSite` alone excludes other sites.
    static func isUsable(in head: RequestHead) -> Bool {
        guard head.method == .get || head.method == .head, !head.fields.contains("Authorization"),
            !head.fields.contains("Origin")
        else { return false }
        return [[], ["same-origin"], ["none"]].contains(head.fields.values("Sec-Fetch-Site"))
    }

    /// The fields without the cookie. Other cookies keep their bytes.
    package static func removed(from fields: Fields) -> Fields {
        guard fields.contains("Cookie") else { return fields }
        var result = Fields()
        result.reserveCapacity(fields.count)
        for field in fields {
            guard field.name.equalsIgnoringASCIICase("Cookie"),
                pairs(field.value).contains(where: { name(of: $0) == name })
            else {
                result.append(field.name, field.value)
                continue
            }
            let kept = pairs(field.value).filter { name(of: $0) != name }
            let value = kept.map { String(Substring($0)) }.joined(separator: ";").drop { $0 == " " }
            if !value.isEmpty { result.append(field.name, String(value)) }
        }
        return result
    }

    // Bytes are compared, because a combining mark forms one Character with the separator before it.
    private static func pairs(_ line: String) -> [Substring.UTF8View] {
        line.utf8.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
    }

    private static func name(of pair: Substring.UTF8View) -> String {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let name = pair.prefix { $0 != UInt8(ascii: "=") }.drop(while: isBlank)
        let end = name.lastIndex { !isBlank($0) }
        return end.map { String(Substring(name[...$0])) } ?? ""
    }
}

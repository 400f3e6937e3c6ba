import Digests
import Foundation
import HTTPSemantics
import UploadStorage

/// The representation of an event for its receivers: a CloudEvent (version 1.0, JSON format, structured mode) with the
/// fields of Standard Webhooks (standardwebhooks.com, version 1).
struct CloudEvent {
    static let mediaType = "application/cloudevents+json; charset=utf-8"

    let event: UploadEvent
    /// The attribute `source`: a URI reference that identifies the server.
    let source: String

    /// The attribute `type`.
    var type: String { "onward.upload." + event.kind.rawValue }

    private struct Envelope: Encodable {
        var specversion = "1.0"
        var id: String
        var source: String
        var type: String
        var subject: String
        var time: String
        var datacontenttype = "application/json"
        var data: Payload
    }

    private struct Payload: Encodable {
        var upload: String
        var principal: String
        var method: String
        var target: String
        var length: Int64?
        var status: Int?
        var file: String?
        var reason: String?
        var fields: [String: String]
    }

    /// The JSON text. It is the same for every delivery of an event.
    var body: [UInt8] {
        var fields: [String: String] = [:]
        for field in event.fields {
            let name = field.name.lowercased()
            let value = field.value.repairedFieldText
            fields[name] = fields[name].map { $0 + ", " + value } ?? value
        }
        let milliseconds = Duration.milliseconds(event.time)
        let time = Date(timeIntervalSince1970: milliseconds / .seconds(1))
        let envelope = Envelope(
            id: event.id, source: source, type: type, subject: event.upload,
            time: time.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)),
            data: Payload(
                upload: event.upload, principal: event.principal, method: event.method, target: event.target,
                length: event.length, status: event.status, file: event.file, reason: event.reason, fields: fields))
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Strings and numbers can always be encoded.
        guard let json = try? encoder.encode(envelope) else { preconditionFailure("an event cannot be encoded") }
        return Array(json)
    }

    /// The fields of a request that delivers the event.
    /// - Parameters:
    ///   - secrets: the request gets one signature for each secret.
    ///   - seconds: the time of the attempt, in seconds since 1970.
    func fields(body: [UInt8], secrets: [EventSecret], at seconds: Int64) -> Fields {
        var fields: Fields = [
            "Content-Type": Self.mediaType, "webhook-id": event.id, "webhook-timestamp": "\(seconds)",
        ]
        if !secrets.isEmpty {
            let signed = Array("\(event.id).\(seconds).".utf8) + body
            let signatures = secrets.map { "v1," + $0.signature(of: signed) }
            fields.append("webhook-signature", signatures.joined(separator: " "))
        }
        return fields
    }
}

/// A secret with which events are signed (Standard Webhooks: 24 to 64 bytes, in Base64 after `whsec_`).
public struct EventSecret: Sendable, Hashable {
    private let key: [UInt8]

    /// Parses `whsec_` and the Base64 form of 24 to 64 bytes.
    /// - Throws: ``SettingError`` that describes the mistake, and does not contain the secret.
    public init(parsing text: String) throws(SettingError) {
        guard text.hasPrefix("whsec_"), let data = Data(base64Encoded: String(text.dropFirst(6))),
            (24...64).contains(data.count)
        else { throw SettingError("a secret is whsec_ followed by the Base64 form of 24 to 64 random bytes") }
        key = Array(data)
    }

    /// The HMAC-SHA256 (RFC 2104) in Base64.
    func signature(of bytes: [UInt8]) -> String {
        MessageAuthentication.sha256(of: bytes, key: key).base64
    }
}

import Foundation
import HTTPSemantics
import SystemCalls

@testable import ConformanceKit

/// A download of the reference client.
final class ReferenceDownloading: ReferenceTransfer {
    private var content: [UInt8] = []
    /// The entity tag, or Last-Modified if there is none.
    private var validator: String?
    private var total: Int64?

    private var partial: String { task.state + "/part" }

    func run() throws {
        restore()
        var isDone = false
        defer {
            if client.allowedBehavior == .preallocates, !isDone, let total {
                let remaining = max(0, Int(total) - content.count)
                try? Data(content + [UInt8](repeating: 0, count: remaining)).write(to: URL(fileURLWithPath: task.file))
            }
        }
        var place = target
        var redirections = 0
        while true {
            let connection = try connect(place)
            var fields = credentials(for: place)
            if !content.isEmpty {
                fields.append(("Range", "bytes=\(content.count)-"))
                if let validator, !client.has(.mixesDates) { fields.append(("If-Range", validator)) }
            }
            do {
                let response = try read(connection, Request("GET", place.target, fields))
                if [307, 308].contains(response.status), let next = response.location.flatMap(place.resolving) {
                    redirections += 1
                    guard redirections < 5 else { throw ReferenceFailure.failed }
                    place = next
                    continue
                }
                if try handle(response) { break }
            } catch is WireFailure {
                if client.has(.treatsClosedDownloadAsSuccess) { break }
                try waitForNextAttempt()
            }
        }
        isDone = true
        try Data(content).write(to: URL(fileURLWithPath: task.file))
        try? FileManager.default.removeItem(atPath: partial)
    }

    /// Reads a response that may be incomplete.
    private func read(_ connection: RawConnection, _ request: ConformanceKit.Request) throws -> Partial {
        try connection.send(request)
        while try connection.readInterim() != nil {}
        guard let head = connection.finalHead else { throw WireFailure.malformed("no head") }
        var isComplete = false
        var bytes: [UInt8] = []
        if let length = head.fields["Content-Length"].flatMap({ Int($0) }) {
            while connection.input.count - connection.position < length, connection.ending == nil {
                guard receives(on: connection), !task.shouldKill() else { break }
            }
            bytes = Array(connection.input[connection.position...].prefix(length))
            isComplete = bytes.count == length
        } else {
            let marker = Array("\r\n0\r\n\r\n".utf8)
            while connection.ending == nil, !connection.input.suffix(marker.count).elementsEqual(marker) {
                guard receives(on: connection) else { break }
            }
            // The scripted server sends content in one chunk.
            let raw = connection.input[connection.position...]
            if let end = raw.firstIndex(of: UInt8(ascii: "\n")) {
                let size = Int(String(decoding: raw[..<end].dropLast(), as: UTF8.self), radix: 16) ?? 0
                bytes = Array(raw[(end + 1)...].prefix(size))
                isComplete = connection.input.suffix(marker.count).elementsEqual(marker)
            }
        }
        return Partial(status: head.status, fields: head.fields, bytes: bytes, isComplete: isComplete)
    }

    /// Waits for more bytes, and returns whether the wait succeeded.
    private func receives(on connection: RawConnection) -> Bool {
        let deadline = Deadline(in: Self.timeout)
        while !deadline.isOver, !task.shouldKill() {
            do throws(Errno) {
                try connection.receive(until: Deadline(in: .milliseconds(50)))
                return true
            } catch {
                if error != .timedOut { return false }
            }
        }
        return false
    }

    /// - Returns: whether the download is complete.
    private func handle(_ response: Partial) throws -> Bool {
        let date = client.has(.ignoresDates) ? nil : response.single("Last-Modified")
        let reported = response.single("ETag") ?? date
        switch response.status {
        case 200:
            if client.has(.appendsFullFileToPart), !content.isEmpty {
                content += response.bytes
            } else {
                content = response.bytes
            }
            validator = reported
            total = response.single("Content-Length").flatMap { Int64($0) }
        case 206:
            let range = response.single("Content-Range").flatMap { ContentRange(parsing: $0) }
            if content.isEmpty {
                // No part was requested.
                guard client.has(.treatsPartAsComplete) else { throw ReferenceFailure.failed }
                content = response.bytes
                return true
            }
            let isPlaced =
                range?.range?.lowerBound == Int64(content.count) || client.has(.acceptsShiftedPart)
                || client.has(.placesByContentRange)
            let isTotal = total == nil || range?.size == total || client.has(.ignoresTotal)
            let isFit = range == nil ? client.has(.appendsPartWithoutRange) : isPlaced && isTotal
            let isSame = reported == validator || client.has(.mixesRepresentations) || client.has(.mixesDates)
            if !isFit || !isSame {
                forget()
                try waitForNextAttempt()
                return false
            }
            if client.has(.placesByContentRange), let start = range?.range?.lowerBound {
                content = Array(content.prefix(Int(start)))
                content += [UInt8](repeating: 0, count: Int(start) - content.count)
            }
            content += response.bytes
            progress()
            if let size = range?.size, Int64(content.count) < size, response.isComplete {
                let end = range?.range?.upperBound
                let isAccepted =
                    client.has(.completesWithAnyPart) || client.has(.completesWithAnyContent) && end == size
                // The server sent less than was requested.
                if !isAccepted { return false }
            }
        case 416:
            let size = response.single("Content-Range").flatMap { ContentRange(parsing: $0) }?.size
            if size == Int64(content.count), reported == validator { return true }
            if client.has(.treatsAny416AsEnd) { return true }
            forget()
            try waitForNextAttempt()
            return false
        case 503:
            try waitForNextAttempt(after: response.single("Retry-After").flatMap { Int64($0) })
            return false
        default:
            guard client.has(.countsFailureAsSuccess) else { throw ReferenceFailure.failed }
            return true
        }
        if response.isComplete || client.has(.treatsCutAsComplete) { return true }
        if client.allowedBehavior == .preallocates { throw ReferenceFailure.failed }
        saveResumableContent()
        try waitForNextAttempt()
        return false
    }

    private func saveResumableContent() {
        let isWeak = validator?.hasPrefix("W/") == true
        let mayCombine = client.has(.combinesUnderWeakTag) || client.has(.sendsIfRangeWithWeakTag)
        if validator == nil && !client.has(.combinesWithoutValidator) || isWeak && !mayCombine { return forget() }
        let state = (validator ?? "") + "\n"
        try? (Data(state.utf8) + Data(content)).write(to: URL(fileURLWithPath: partial))
    }

    private func restore() {
        guard !client.has(.forgetsDownload), let data = try? Data(contentsOf: URL(fileURLWithPath: partial)),
            let end = data.firstIndex(of: UInt8(ascii: "\n"))
        else { return }
        validator = String(decoding: data[..<end], as: UTF8.self)
        content = [UInt8](data[(end + 1)...])
    }

    private func forget() {
        content = []
        validator = nil
        total = nil
        try? FileManager.default.removeItem(atPath: partial)
    }

    private struct Partial: FieldCarrier {
        let status: Int
        let fields: Fields
        let bytes: [UInt8]
        let isComplete: Bool

        var location: String? { single("Location") }
    }
}

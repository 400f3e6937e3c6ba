import HTTPSemantics
import ResumableUpload
import TestSupport

@testable import ResumableTransfer

/// A download from a server that cuts connections, changes its representation and sends wrong responses. A client can
/// detect all of these faults.
struct DownloadModel {
    private struct Version {
        var bytes: [UInt8]
        var fields: Fields
    }

    /// A response: its head, its complete content, and the version of the representation that the content belongs to.
    private struct Answer {
        var status: Status
        var fields = Fields()
        var content: [UInt8] = []
        var version = 0
        /// Whether the content is never cut.
        var isUncut = false
    }

    private var generator: SeededGenerator
    private var machine: DownloadMachine
    private var versions: [Version] = []
    private var file: [UInt8] = []
    /// The version that the bytes in the file belong to.
    private var inFile = 0
    /// The file that is kept until its replacement is complete, and its version.
    private var earlier: (bytes: [UInt8], version: Int)?
    private(set) var problems: [String] = []

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        var retry = RetryPolicy()
        retry.maxRetriesWithoutProgress = 60
        machine = DownloadMachine(retry: retry, random: { 0 })
        change()
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }

    /// Replaces the representation with another one that differs in few bytes.
    private mutating func change() {
        var bytes = versions.last?.bytes ?? (0..<Int.random(in: 0...300, using: &generator)).map { UInt8($0 % 251) }
        if !versions.isEmpty {
            if chance(50) { bytes += [UInt8](repeating: 7, count: Int.random(in: 1...40, using: &generator)) }
            if !bytes.isEmpty { bytes[Int.random(in: 0..<bytes.count, using: &generator)] ^= 0x55 }
        }
        let number = versions.count
        let date = HTTPDate(secondsSinceEpoch: DownloadMachine.now).serialized
        let modified = HTTPDate(secondsSinceEpoch: DownloadMachine.now - 100_000 + Int64(number)).serialized
        var fields: Fields = ["Date": date]
        switch Int.random(in: 0..<10, using: &generator) {
        case 0: break
        case 1: fields.append("ETag", "W/\"same\"")
        case 2, 3: fields.append("Last-Modified", modified)
        case 4:
            fields.append("ETag", "W/\"\(number)\"")
            fields.append("Last-Modified", modified)
        default: fields.append("ETag", "\"\(number)\"")
        }
        versions.append(Version(bytes: bytes, fields: fields))
    }

    /// - Returns: whether the download was completed.
    mutating func run() -> Bool {
        for _ in 0..<400 {
            switch machine.next() {
            case .send(let request): exchange(request)
            case .wait: break
            case .refreshCredentials: machine.credentialsRefreshed(isFresh: true)
            case .finished:
                check(machine.position == Int64(file.count), "the position is not the end")
                check(file == versions[inFile].bytes, "the file is not the representation")
                return true
            case .failed: return false
            }
            let known = Int(machine.position)
            check(known <= file.count, "the position is beyond the received bytes")
            check(
                file.prefix(known) == versions[inFile].bytes.prefix(known), "a byte before the position is wrong")
            if machine.representation == nil { check(machine.position == 0, "a position without a representation") }
        }
        return false
    }

    private mutating func check(_ isTrue: Bool, _ problem: String) {
        if !isTrue { problems.append(problem) }
    }

    private mutating func exchange(_ request: ClientRequest) {
        check((request.start > 0) == request.fields.contains("Range"), "Range does not fit the start")
        check(request.fields.contains("Range") == request.fields.contains("If-Range"), "one range field is missing")
        check(request.fields["If-Range"]?.hasPrefix("W/") != true, "If-Range has a weak tag")
        if chance(10) { change() }
        if chance(10) { return machine.interrupted(.connection) }
        let answer = answer(to: request)
        let head = ClientResponseHead(
            status: answer.status, fields: answer.fields,
            location: answer.status == 302 ? ResolvedLocation(uri: "http://h/x", relation: .sameOrigin) : nil)
        var ending = ContentEnding.complete
        var content = answer.content
        if chance(40), !content.isEmpty, !answer.isUncut {
            // Without a length the end may be missing although all bytes are there.
            let minimum = answer.fields.contains("Content-Length") ? 1 : 0
            content.removeLast(chance(30) ? minimum : Int.random(in: minimum...content.count, using: &generator))
            ending = .cut(.connection)
        }
        switch machine.reception(of: head) {
        case .resume(_, let end):
            file.removeSubrange(min(Int(request.start), file.count)...)
            let room = Int(end) - file.count
            if content.count > room { ending = .overrun }
            file += content.prefix(room)
        case .replace:
            if machine.hasBytes, machine.earlier == nil { earlier = (file, inFile) }
            file = content
            inFile = answer.version
        case .complete, .doubtful, .inconsistent, .earlier, .unexpected, .redirection, .refusal, .violation: break
        }
        machine.responded(head, position: Int64(file.count), ending: ending, now: DownloadMachine.now)
        if machine.earlier == nil, !machine.isFinished, let earlier {
            (file, inFile) = earlier
            self.earlier = nil
        }
    }

    private mutating func answer(to request: ClientRequest) -> Answer {
        let current = versions.count - 1
        let version = versions[current]
        if chance(5) { return Answer(status: [302, 500, 503, 429].randomElement(using: &generator) ?? 503) }
        let entire = Answer(
            status: 200,
            fields: version.fields.merging(chance(70) ? ["Content-Length": "\(version.bytes.count)"] : [:]),
            content: version.bytes, version: current)
        let start = Int(request.start)
        // A faulty server ignores If-Range and sends a part of its current representation.
        let isSame = request.fields["If-Range"].map { value in
            [version.fields["ETag"], version.fields["Last-Modified"]].contains(value)
        }
        guard start > 0, isSame == true || chance(30), !chance(10) else { return entire }
        if start >= version.bytes.count { return unsatisfied(version, current) }
        return withFault(part(version, from: start, current), version, start)
    }

    private mutating func unsatisfied(_ version: Version, _ number: Int) -> Answer {
        var fields: Fields = ["Content-Range": "bytes */\(version.bytes.count)"]
        if chance(50) { fields = fields.merging(version.fields) }
        if chance(15) { fields.set("Content-Range", "bytes */\(version.bytes.count + 1)") }
        if chance(10) { fields.remove("Content-Range") }
        return Answer(status: 416, fields: fields, version: number)
    }

    private mutating func part(_ version: Version, from start: Int, _ number: Int) -> Answer {
        let end = chance(20) ? Int.random(in: start + 1...version.bytes.count, using: &generator) : version.bytes.count
        let total = chance(10) ? "*" : "\(version.bytes.count)"
        let range: Fields = ["Content-Range": "bytes \(start)-\(end - 1)/\(total)"]
        return Answer(
            status: 206, fields: version.fields.merging(range), content: [UInt8](version.bytes[start..<end]),
            version: number)
    }

    private mutating func withFault(_ correct: Answer, _ version: Version, _ start: Int) -> Answer {
        var answer = correct
        let size = version.bytes.count
        switch Int.random(in: 0..<16, using: &generator) {
        case 0:
            let other = Int.random(in: 0..<size, using: &generator)
            answer.fields.set("Content-Range", "bytes \(other)-\(size - 1)/\(size)")
            answer.content = [UInt8](version.bytes[other...])
        case 1: answer.fields.set("Content-Range", "items \(start)-\(size - 1)/\(size)")
        case 2:
            answer.fields.set("Content-Type", "multipart/byteranges; boundary=b")
            answer.fields.remove("Content-Range")
        case 3:
            answer.fields.remove("ETag")
            answer.fields.remove("Last-Modified")
        case 4: answer.fields.set("Content-Length", "\(answer.content.count + 1)")
        case 5:
            answer.content = answer.content.map { ~$0 } + [1, 2, 3]
            answer.isUncut = true
        default: break
        }
        return answer
    }
}

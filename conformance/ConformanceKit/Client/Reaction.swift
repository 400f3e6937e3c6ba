/// The reaction of the scripted server to a request.
struct Reaction: Sendable {
    struct Interim: Sendable {
        var status: Int
        var fields: [(String, String)] = []
        /// The number of bytes of content after which the response is sent.
        var at: Int64 = 0
    }

    struct Answer: Sendable {
        var status: Int
        var fields: [(String, String)] = []
        var content: [UInt8] = []
        /// Whether the content is sent in chunks, without Content-Length.
        var isChunked = false
        /// The number of bytes of content after which the connection is closed; `nil` if all are sent.
        var cutAt: Int?
        /// Whether the command is killed after it had time to store the content.
        var shouldKill = false
    }

    enum Ending: Sendable {
        case answer(Answer)
        case reset
        /// The server closes its side of the connection without a response. Bytes that it sent before are delivered.
        case end
        /// The server reads and sends nothing more.
        case stall
        /// The command is killed, and the connection is reset.
        case kill
    }

    var interim: [Interim] = []
    /// The number of bytes of content that are read before the ending; `nil` if all are read.
    var readLimit: Int64?
    /// Whether the content becomes part of the upload.
    var shouldStore = true
    /// Whether the upload is complete when all content has arrived.
    var isCompleting = false
    var ending: Ending

    /// The response of the ending; `nil` if the ending is not a response.
    var answer: Answer? {
        get { if case .answer(let answer) = ending { answer } else { nil } }
        set { if let newValue { ending = .answer(newValue) } }
    }

    mutating func cut(after count: Int64) {
        readLimit = count
        ending = .reset
        isCompleting = false
    }

    mutating func stall(after count: Int64) {
        cut(after: count)
        ending = .stall
    }

    /// Answers before the content is read. No content becomes part of the upload.
    mutating func refuse(_ status: Int, _ fields: [(String, String)] = [], content: [UInt8] = []) {
        readLimit = 0
        shouldStore = false
        isCompleting = false
        ending = .answer(Answer(status: status, fields: fields, content: content))
    }

    mutating func set(_ name: String, _ value: String?) {
        guard var answer else { return }
        answer.fields.removeAll { $0.0.lowercased() == name.lowercased() }
        if let value { answer.fields.append((name, value)) }
        self.answer = answer
    }

    /// Removes all 104 responses.
    mutating func silence() { interim.removeAll { $0.status == 104 } }

    /// Sets or removes a field of every 104.
    mutating func setAnnouncementField(_ name: String, _ value: String?) {
        for index in interim.indices where interim[index].status == 104 {
            interim[index].fields.removeAll { $0.0.lowercased() == name.lowercased() }
            if let value { interim[index].fields.append((name, value)) }
        }
    }
}

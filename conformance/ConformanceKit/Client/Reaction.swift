/// What the scripted server does with a request.
struct Reaction: Sendable {
    struct Interim: Sendable {
        var status: Int
        var fields: [(String, String)] = []
        /// After how many bytes of content it is sent.
        var at: Int64 = 0
    }

    struct Answer: Sendable {
        var status: Int
        var fields: [(String, String)] = []
        var content: [UInt8] = []
        /// Content is sent without Content-Length, in chunks.
        var isChunked = false
        /// How many bytes of content are sent before the connection ends; nil for all.
        var cutAt: Int?
        /// The command is killed when it has had time to store what was sent.
        var kills = false
    }

    enum Ending: Sendable {
        case answer(Answer)
        case reset
        /// The server closes its side of the connection in order, without a response: what it sent before arrives.
        case end
        /// Nothing is read or said any more.
        case stall
        /// The command is killed, and the connection reset.
        case kill
    }

    var interim: [Interim] = []
    /// How many bytes of content are read before the ending; nil for all of them.
    var takes: Int64?
    /// Whether content becomes part of the upload.
    var stores = true
    /// Whether the upload is complete once all content has come.
    var completes = false
    var ending: Ending

    /// The fields of the answer, where there is one.
    var answer: Answer? {
        get { if case .answer(let answer) = ending { answer } else { nil } }
        set { if let newValue { ending = .answer(newValue) } }
    }

    mutating func cut(after count: Int64) {
        takes = count
        ending = .reset
        completes = false
    }

    mutating func stall(after count: Int64) {
        cut(after: count)
        ending = .stall
    }

    /// Answers after so many bytes of content (none) that become no part of the upload.
    mutating func refuse(_ status: Int, _ fields: [(String, String)] = [], content: [UInt8] = []) {
        takes = 0
        stores = false
        completes = false
        ending = .answer(Answer(status: status, fields: fields, content: content))
    }

    mutating func set(_ name: String, _ value: String?) {
        guard var answer else { return }
        answer.fields.removeAll { $0.0.lowercased() == name.lowercased() }
        if let value { answer.fields.append((name, value)) }
        self.answer = answer
    }

    /// No 104.
    mutating func silence() { interim.removeAll { $0.status == 104 } }

    /// Changes the fields of every 104.
    mutating func announce(_ name: String, _ value: String?) {
        for index in interim.indices where interim[index].status == 104 {
            interim[index].fields.removeAll { $0.0.lowercased() == name.lowercased() }
            if let value { interim[index].fields.append((name, value)) }
        }
    }
}

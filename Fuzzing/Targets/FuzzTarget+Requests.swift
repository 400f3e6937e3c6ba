import HTTPSemantics
import ResumableUpload

extension FuzzTarget {
    /// The heads of requests: each is evaluated in every version of the draft, and the decision can be carried out.
    static let requests = FuzzTarget(
        name: "requests",
        dictionary: RequestText.dictionary,
        seeds: { generator in (0..<300).map { _ in Array(RequestText.request(&generator).utf8) } },
        check: { input throws(Violation) in
            guard let head = RequestText.head(InputReader(input).text) else { return }
            guard case .success(let framing) = MessageFraming.evaluate(head) else { return }
            try require(head.fields.firstInvalid == nil, "an invalid field was accepted")
            if case .length(let length) = framing { try require(length >= 0, "a length of \(length)") }
            _ = Expectation(fields: head.fields, version: head.version)
            checkConditions(head)
            for stored in [nil, Dialect.interop3, .interop6, .interop8] {
                let responses = UploadResponses(answering: head.fields, version: head.version, storedDialect: stored)
                try checkUpload(head, framing, responses)
            }
            for dialect in Dialect.allCases {
                try checkUpload(head, framing, UploadResponses(dialect: dialect, shouldEchoVersion: true))
                if let limits = UploadLimits(parsing: head.fields, dialect: dialect) {
                    let announced: Fields = ["Upload-Limit": limits.fieldValue(for: dialect)]
                    let again = UploadLimits(parsing: announced, dialect: dialect)
                    try require(
                        again == limits || limits == UploadLimits(),
                        "\(limits) are read back as \(String(describing: again))")
                }
            }
        })

    private static func checkConditions(_ head: RequestHead) {
        let now = HTTPDate(secondsSinceEpoch: 784_111_777)
        let current = Validators(entityTag: EntityTag(opaque: "x"), lastModified: now, date: now)
        let conditions = Preconditions(fields: head.fields, now: now)
        for validators in [nil, current] {
            _ = conditions.evaluate(method: head.method, current: validators)
        }
        _ = conditions.rangeApplies(current: current)
    }

    private static func checkUpload(
        _ head: RequestHead, _ framing: MessageFraming, _ responses: UploadResponses
    ) throws(Violation) {
        let dialect = responses.dialect
        let limits = [
            UploadLimits(), UploadLimits(maxSize: 5),
            UploadLimits(minSize: 3, maxAppendSize: 4, minAppendSize: 2, maxAge: 60),
        ]
        let kind = RequestKind(method: head.method, isUploadResource: false, fields: head.fields, dialect: dialect)
        for limits in limits {
            var isComplete: Bool?
            if case .creation(let complete) = kind { isComplete = complete }
            let creation = Creation(dialect: dialect, isComplete: isComplete, framing: framing, fields: head.fields)
            switch creation.decide(limits: limits, announces: responses.isInterimResponseAllowed) {
            case .refuse(let error): try checkRefusal(error, responses, limits)
            case .plain(let plan, _), .create(let plan):
                try checkPlan(plan, framing, limits, start: 0)
                try require(
                    creation.declaredLength == nil || plan.length == creation.declaredLength, "\(plan) of \(creation)")
            }
        }
        guard RequestKind(method: head.method, isUploadResource: true, fields: head.fields, dialect: dialect) == .append
        else { return }
        let append: Append
        do throws(UploadError) {
            append = try Append(dialect: dialect, fields: head.fields, framing: framing)
        } catch {
            try checkRefusal(error, responses, UploadLimits())
            return
        }
        for limits in limits {
            for offset in [0, 4, append.offset] where (0...limits.effectiveMaxSize).contains(offset) {
                for length in [nil, 4, append.declaredLength] where length.map({ $0 >= offset }) ?? true {
                    for phase in [UploadState.Phase.receiving, .processing, .complete(Response(status: 201))] {
                        let state = UploadState(offset: offset, length: length, phase: phase, limits: limits)
                        switch append.decide(state: state) {
                        case .refuse(let error): try checkRefusal(error, responses, limits)
                        case .accept(let plan):
                            try require(phase == .receiving, "\(append) is accepted by a complete upload")
                            try checkPlan(plan, framing, limits, start: offset)
                            try require(
                                plan.length == nil || length == nil || plan.length == length, "\(plan) has a new length"
                            )
                        case .replay, .join: try require(phase != .receiving, "there is no response to repeat")
                        }
                    }
                }
            }
        }
    }

    /// Checks that content of the declared length matches the plan with which it was accepted.
    private static func checkPlan(
        _ plan: ContentPlan, _ framing: MessageFraming, _ limits: UploadLimits, start: Int64
    ) throws(Violation) {
        try require(plan.start == start && plan.maxSize <= limits.effectiveMaxSize, "\(plan)")
        if let length = plan.length { try require((start...plan.maxSize).contains(length), "\(plan)") }
        let content: Int64
        switch framing {
        case .none: content = 0
        case .length(let length): content = length
        case .chunked: return
        }
        var counter = ContentCounter(plan)
        try require(counter.receive(Int(content)) == .accept, "\(plan) does not accept \(content) bytes")
        if case .short = counter.end() { throw Violation("\(plan) is short with \(content) bytes") }
    }

    private static func checkRefusal(
        _ error: UploadError, _ responses: UploadResponses, _ limits: UploadLimits
    ) throws(Violation) {
        let response = responses.refused(error, offset: 4, limits: limits)
        try require((400..<500).contains(response.status.rawValue), "\(error) is \(response.status)")
        try require(response.fields.firstInvalid == nil, "\(error) is answered with an invalid field")
        let size = response.content.length ?? .max
        try require(size < 2048, "the response to \(error) has \(size) bytes of content")
    }
}

import HTTPSemantics
import ResumableUpload

/// The state that the store must have after a crash at one point of a history, derived from the notes up to that point.
struct Expectation {
    struct Upload {
        var isKnown = false
        /// Whether the upload must exist until it is removed.
        var isConfirmed = false
        var offset: Int64 = 0
        var mayEnd = false
        var hasTargetRun = false
        var response: Response?
        var mustBeGone = false
        var mayBeCanceled = false
        var mayBeSwept = false
    }

    private(set) var now = History.begin
    private(set) var uploads: [Upload]
    /// For each name, the uploads whose content the file may have; `nil`: the file may be absent.
    private(set) var contents: [Set<Int?>]
    /// For each name, the changes that had begun and were not yet reported: each may become effective at any time.
    private var underWay: [Set<Int?>]

    init(_ history: History, at position: Int) {
        uploads = Array(repeating: Upload(), count: history.uploads.count)
        contents = Array(repeating: [nil], count: History.names.count)
        underWay = Array(repeating: [], count: History.names.count)
        for (index, note) in history.notes where index <= position { apply(note, history) }
    }

    private mutating func apply(_ note: HistoryEntry, _ history: History) {
        switch note {
        case .created(let upload, let isRecorded):
            uploads[upload].isKnown = true
            uploads[upload].isConfirmed = isRecorded
        case .confirmed(let upload): uploads[upload].isConfirmed = true
        case .acknowledged(let upload, let offset):
            uploads[upload].offset = max(uploads[upload].offset, offset)
            if offset > 0 { uploads[upload].isConfirmed = true }
        case .endBegan(let upload): uploads[upload].mayEnd = true
        case .targetRan(let upload):
            uploads[upload].hasTargetRun = true
            uploads[upload].isConfirmed = true
        case .answered(let upload, let response):
            uploads[upload].response = response
            uploads[upload].isConfirmed = true
        case .cancellationBegan(let upload):
            uploads[upload].mayEnd = true
            uploads[upload].mayBeCanceled = true
        case .gone(let upload): uploads[upload].mustBeGone = true
        case .time(let seconds): now = seconds
        case .expired(let upload): uploads[upload].mayBeSwept = true
        case .publicationBegan(let upload): begin(upload, history.uploads[upload].name)
        case .published(let upload): end(upload, history.uploads[upload].name)
        case .removalBegan(let name): begin(nil, name)
        case .removed(let name): end(nil, name)
        }
    }

    private mutating func begin(_ content: Int?, _ name: Int) {
        underWay[name].insert(content)
        contents[name].insert(content)
    }

    private mutating func end(_ content: Int?, _ name: Int) {
        underWay[name].remove(content)
        contents[name] = underWay[name].union([content])
    }
}

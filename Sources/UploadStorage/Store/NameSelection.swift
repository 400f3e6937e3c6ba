import HTTPSemantics

/// Some names of a directory in the order of their bytes.
struct NamePage: Sendable, Hashable {
    var names: [String] = []
    /// Whether the directory has more names after these.
    var hasMore = false
}

/// Selects the names of one page of a directory: the first names after a cursor that begin with a prefix, in the order of
/// their bytes. The names of the directory can be offered in any order. At most about twice as many names as a page has are
/// kept.
struct NameSelection: ~Copyable {
    /// The size of a page plus 1: the additional name shows whether there is another page.
    private let capacity: Int
    private let cursor: [UInt8]
    private let prefix: [UInt8]
    private let isListing: Bool
    private var names: [[UInt8]] = []
    /// If the bound is not empty, only names before the bound can still be on the page.
    private var bound: [UInt8] = []

    /// - Parameters:
    ///   - limit: the maximum number of names on the page, at least one.
    ///   - isListing: whether only names that can be expressed in a URL are selected. Otherwise all names in UTF-8 are
    ///     selected.
    init(after cursor: String?, prefix: String = "", limit: Int, isListing: Bool = true) {
        precondition(limit > 0)
        self.isListing = isListing
        capacity = limit + 1
        self.cursor = Array((cursor ?? "").utf8)
        self.prefix = Array(prefix.utf8)
    }

    /// Whether no name after those that were offered can be on the page.
    var isFull: Bool { names.count >= capacity }

    mutating func offer(_ name: UnsafeRawBufferPointer) {
        guard prefix.isEmpty || name.starts(with: prefix),
            cursor.isEmpty || cursor.lexicographicallyPrecedes(name),
            bound.isEmpty || name.lexicographicallyPrecedes(bound),
            isListing ? Self.listedName(name) != nil : String(validating: name, as: UTF8.self) != nil
        else { return }
        names.append(Array(name))
        if names.count == 2 * capacity { reduce() }
    }

    /// Returns the names of the page in their order.
    consuming func page() -> NamePage {
        reduce()
        let hasMore = names.count == capacity
        let page = names.prefix(capacity - 1).map { String(decoding: $0, as: UTF8.self) }
        return NamePage(names: page, hasMore: hasMore)
    }

    private mutating func reduce() {
        names.sort { $0.lexicographicallyPrecedes($1) }
        // Some file systems return a name twice if its file is replaced while the directory is read.
        var last = 0
        for index in names.indices where names[index] != names[last] {
            last += 1
            names[last] = names[index]
        }
        names.removeLast(max(0, names.count - min(last + 1, capacity)))
        if names.count == capacity { bound = names[capacity - 1] }
    }

    /// Returns the name as text; nil if it cannot be expressed in a URL.
    static func listedName(_ bytes: UnsafeRawBufferPointer) -> String? {
        guard let name = String(validating: bytes, as: UTF8.self), (try? PathSegments(segments: [name])) != nil
        else { return nil }
        return name
    }
}

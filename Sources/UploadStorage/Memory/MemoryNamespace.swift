/// The names in the in-memory implementation, and the changes that led to them. A change is durable once all
/// directories that it affects are synchronized. If only the new directory of a move is synchronized, the new name is
/// durable, and the old name may exist, too. Change times behave as on a journaling file system: see ``renames``.
struct MemoryNamespace {
    enum Node: Hashable {
        case directory
        case file(inode: Int)
    }

    private struct Change {
        var removed: String?
        var added: [(path: String, node: Node)] = []
        var renamed: [Node] = []
        var unsynchronized: Set<String>

        /// Whether the new name of a move is durable. A later failure for the old directory does not change that.
        private(set) var hasDurableNewName = false

        mutating func noteDurableName() {
            guard removed != nil, let new = added.first, !unsynchronized.contains(MemoryNamespace.lost) else { return }
            if !unsynchronized.contains(MemoryNamespace.parent(of: new.path)) { hasDurableNewName = true }
        }
    }

    /// An element of ``Change/unsynchronized`` that no synchronization removes, because no directory has this name.
    private static let lost = "lost"

    static let uploads = "uploads"
    static let files = "files"

    private(set) var nodes: [String: Node] = [uploads: .directory, files: .directory]
    /// The names before all of the changes: those that existed after the last crash.
    private var base: [String: Node] = [uploads: .directory, files: .directory]
    /// The number of renames of each node. A rename sets the change time (ctime) of the node, and a journaling file
    /// system writes both together: after a crash a node has the new name and the new time, or neither.
    private(set) var renames: [Node: Int] = [:]
    private var baseRenames: [Node: Int] = [:]
    private var changes: [Change] = []

    mutating func add(_ path: String, _ node: Node) {
        nodes[path] = node
        changes.append(Change(added: [(path, node)], unsynchronized: [Self.parent(of: path)]))
    }

    mutating func remove(_ path: String) {
        nodes[path] = nil
        changes.append(Change(removed: path, unsynchronized: [Self.parent(of: path)]))
    }

    mutating func move(_ path: String, to newPath: String) {
        guard let node = nodes.removeValue(forKey: path) else { return }
        nodes[newPath] = node
        renames[node, default: 0] += 1
        changes.append(
            Change(
                removed: path, added: [(newPath, node)], renamed: [node],
                unsynchronized: [Self.parent(of: path), Self.parent(of: newPath)]))
    }

    mutating func exchange(_ path: String, with other: String) {
        guard let node = nodes[path], let otherNode = nodes[other] else { return }
        nodes[path] = otherNode
        nodes[other] = node
        for node in [node, otherNode] { renames[node, default: 0] += 1 }
        changes.append(
            Change(
                added: [(path, otherNode), (other, node)], renamed: [node, otherNode],
                unsynchronized: [Self.parent(of: path), Self.parent(of: other)]))
    }

    mutating func synchronize(_ directory: String) {
        for index in changes.indices {
            changes[index].unsynchronized.remove(directory)
            changes[index].noteDurableName()
        }
    }

    /// Fails as Linux does: unwritten changes are marked as clean, and no later call writes them.
    mutating func failToSynchronize(_ directory: String) {
        for index in changes.indices where changes[index].unsynchronized.contains(directory) {
            changes[index].unsynchronized.insert(Self.lost)
        }
    }

    /// Returns the names after a crash: any of the changes that were not synchronized may be missing.
    func afterCrash(using generator: inout some RandomNumberGenerator) -> MemoryNamespace {
        var result = base
        var renames = baseRenames
        for change in changes {
            let isComplete = change.unsynchronized.isEmpty || Bool.random(using: &generator)
            guard isComplete || change.hasDurableNewName else { continue }
            if isComplete, let path = change.removed { result[path] = nil }
            for (path, node) in change.added { result[path] = node }
            for node in change.renamed { renames[node, default: 0] += 1 }
        }
        // The contents of a lost directory are lost, too.
        for path in result.keys.sorted() where path.contains("/") && result[Self.parent(of: path)] != .directory {
            result[path] = nil
        }
        var survivor = MemoryNamespace()
        survivor.nodes = result
        survivor.base = result
        survivor.renames = renames
        survivor.baseRenames = renames
        return survivor
    }

    static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "" }
        return String(path[..<slash])
    }
}

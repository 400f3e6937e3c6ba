/// A simulated disk with a write cache, and its content after a power loss. Everything that was synchronized survives;
/// of everything else, any part may survive.
///
/// - Of the bytes that were written and not synchronized, any sectors may have reached the disk, in any order. The new
///   size of a file may be durable although its new bytes are not.
/// - Names are independent of each other: in a directory that was not synchronized, each name may be in the state after
///   any of its changes. But a rename never loses a file: the old name disappears only if the new name is durable, and
///   for that the directory of the new name has to be synchronized.
/// - `fdatasync` makes neither names nor times durable.
struct Disk {
    enum Node: Hashable {
        case directory
        case file(Int)
    }

    private static let sector = 512

    private enum Change {
        case write(offset: Int, bytes: [UInt8])
        case truncate(size: Int)
        case setModified(Int64)

        var isAttribute: Bool { if case .setModified = self { true } else { false } }
    }

    private struct NameChange {
        let number: Int
        let path: String
        let node: Node?
        /// The number of the change that has to be durable if this change is durable.
        let required: Int?
    }

    private var nodes: [String: Node]
    private var files: [Int: DiskImage.File]
    private var nextFile: Int
    private var pendingChanges: [Int: [Change]] = [:]
    private var pendingNames: [NameChange] = []
    private var nextChange = 0
    /// All names, durable or not.
    private var present: [String: Node]

    init(_ image: DiskImage) {
        nodes = image.nodes
        files = image.files
        nextFile = image.nextFile
        present = image.nodes
    }

    // MARK: Before the crash

    mutating func apply(_ event: DiskEvent) {
        switch event {
        case .create(let path, let file):
            files[file] = DiskImage.File()
            nextFile = max(nextFile, file + 1)
            change(path, .file(file))
        case .makeDirectory(let path): change(path, .directory)
        case .write(let file, let offset, let bytes):
            pendingChanges[file, default: []].append(.write(offset: offset, bytes: bytes))
        case .truncate(let file, let size): pendingChanges[file, default: []].append(.truncate(size: size))
        case .setModified(let file, let time): pendingChanges[file, default: []].append(.setModified(time))
        case .link(let path, let file): change(path, .file(file))
        case .remove(let path): change(path, nil)
        case .move(let path, let newPath):
            guard let node = present[path] else { return }
            let arrival = change(newPath, node)
            change(path, nil, required: arrival)
        case .exchange(let path, let other):
            guard let node = present[path], let otherNode = present[other] else { return }
            let arrival = change(other, node)
            change(path, otherNode, required: arrival)
        case .synchronize(let file, let withAttributes): synchronize(file, withAttributes: withAttributes)
        case .synchronizeDirectory(let path): synchronizeDirectory(path)
        case .synchronizeAll:
            makeDurable(Set(pendingNames.map(\.number)))
            for file in pendingChanges.keys { synchronize(file, withAttributes: true) }
        }
    }

    /// The removal of a name by a rename becomes durable only after the new name is durable.
    private mutating func synchronizeDirectory(_ path: String) {
        let pending = Set(pendingNames.map(\.number))
        var chosen: Set<Int> = []
        var left: Set<String> = []
        for change in pendingNames where Self.parent(of: change.path) == path {
            let lacksArrival = change.required.map { pending.contains($0) && !chosen.contains($0) } ?? false
            if lacksArrival || left.contains(change.path) {
                left.insert(change.path)
            } else {
                chosen.insert(change.number)
            }
        }
        makeDurable(chosen)
    }

    @discardableResult
    private mutating func change(_ path: String, _ node: Node?, required: Int? = nil) -> Int {
        present[path] = node
        pendingNames.append(NameChange(number: nextChange, path: path, node: node, required: required))
        nextChange += 1
        return nextChange - 1
    }

    private mutating func synchronize(_ file: Int, withAttributes: Bool) {
        var others: [Change] = []
        for change in pendingChanges[file] ?? [] {
            if change.isAttribute && !withAttributes {
                others.append(change)
            } else {
                Self.apply(change, to: &files[file, default: DiskImage.File()])
            }
        }
        pendingChanges[file] = others.isEmpty ? nil : others
    }

    private mutating func makeDurable(_ chosen: Set<Int>) {
        let all = closed(chosen)
        for change in pendingNames where all.contains(change.number) { nodes[change.path] = change.node }
        pendingNames.removeAll { all.contains($0.number) }
    }

    /// Returns these changes and all changes that they require: the earlier changes of the same name, and for the
    /// removal of an old name the creation of the new one.
    private func closed(_ chosen: Set<Int>) -> Set<Int> {
        var result = chosen
        var isSettled = false
        while !isSettled {
            isSettled = true
            var wanted: Set<String> = []
            for change in pendingNames.reversed() {
                if result.contains(change.number) {
                    wanted.insert(change.path)
                    if let required = change.required, pendingNames.contains(where: { $0.number == required }),
                        result.insert(required).inserted
                    {
                        isSettled = false
                    }
                } else if wanted.contains(change.path) {
                    result.insert(change.number)
                    isSettled = false
                }
            }
        }
        return result
    }

    private static func apply(_ change: Change, to file: inout DiskImage.File) {
        switch change {
        case .write(let offset, let bytes): write(bytes[...], at: offset, to: &file.content)
        case .truncate(let size): resize(&file.content, to: size)
        case .setModified(let time): file.modified = time
        }
    }

    private static func write(_ bytes: ArraySlice<UInt8>, at offset: Int, to content: inout [UInt8]) {
        if content.count < offset + bytes.count { resize(&content, to: offset + bytes.count) }
        content.withUnsafeMutableBytes { target in
            bytes.withUnsafeBytes { source in
                UnsafeMutableRawBufferPointer(rebasing: target[offset..<offset + source.count]).copyMemory(from: source)
            }
        }
    }

    private static func resize(_ content: inout [UInt8], to size: Int) {
        if content.count > size { content.removeLast(content.count - size) }
        if content.count < size { content += [UInt8](repeating: 0, count: size - content.count) }
    }

    // MARK: The crash

    /// The image with all changes applied, as a process finds it without a crash.
    var complete: DiskImage {
        var copy = self
        copy.apply(.synchronizeAll)
        return copy.image(copy.files)
    }

    /// One of the images that a process may find after a crash.
    func afterCrash(using generator: inout some RandomNumberGenerator) -> DiskImage {
        var copy = self
        copy.makeDurable(survivingNames(using: &generator))
        var files: [Int: DiskImage.File] = [:]
        for (number, file) in self.files.sorted(by: { $0.key < $1.key }) {
            files[number] = surviving(file, pendingChanges[number] ?? [], using: &generator)
        }
        return copy.image(files)
    }

    private func survivingNames(using generator: inout some RandomNumberGenerator) -> Set<Int> {
        let share = [0, 100, 50, 20, 80][Int.random(in: 0..<5, using: &generator)]
        var last: [String: Bool] = [:]
        var result: Set<Int> = []
        for change in pendingNames {
            // If a change of a name is lost, the later changes of this name are lost, too.
            if last[change.path] == false { continue }
            let survives = Int.random(in: 0..<100, using: &generator) < share
            last[change.path] = survives
            if survives { result.insert(change.number) }
        }
        return result
    }

    private func surviving(
        _ file: DiskImage.File, _ changes: [Change], using generator: inout some RandomNumberGenerator
    ) -> DiskImage.File {
        guard !changes.isEmpty else { return file }
        var result = file
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: break
        case 1:
            for change in changes { Self.apply(change, to: &result) }
        case 2:
            // The first changes survive in order, the last of them in part.
            let count = Int.random(in: 0..<changes.count, using: &generator)
            for change in changes[..<count] { Self.apply(change, to: &result) }
            tear(changes[count], &result, share: 50, using: &generator)
        case 3:
            // The last changes survive without the first changes.
            for change in changes[Int.random(in: 0..<changes.count, using: &generator)...] {
                Self.apply(change, to: &result)
            }
        default:
            let share = [10, 50, 90][Int.random(in: 0..<3, using: &generator)]
            for change in changes { tear(change, &result, share: share, using: &generator) }
        }
        return result
    }

    /// Applies some sectors of a write. Another change is applied completely or not at all.
    private func tear(
        _ change: Change, _ file: inout DiskImage.File, share: Int, using generator: inout some RandomNumberGenerator
    ) {
        func survives() -> Bool { Int.random(in: 0..<100, using: &generator) < share }
        guard case .write(let offset, let bytes) = change else {
            if survives() { Self.apply(change, to: &file) }
            return
        }
        let oldSize = file.content.count
        if Int.random(in: 0..<4, using: &generator) == 0, oldSize < offset + bytes.count {
            // The file has grown, and the new part may hold old content of the disk.
            Self.resize(&file.content, to: offset + bytes.count)
            if Bool.random(using: &generator) {
                let start = max(oldSize, offset)
                let staleBytes = [UInt8](repeating: 0xDB, count: offset + bytes.count - start)
                Self.write(staleBytes[...], at: start, to: &file.content)
            }
        }
        // A write is torn between pages or between single sectors.
        let unit = Bool.random(using: &generator) ? Self.sector : 8 * Self.sector
        var start = offset
        while start < offset + bytes.count {
            let end = min((start / unit + 1) * unit, offset + bytes.count)
            if survives() { Self.write(bytes[(start - offset)..<(end - offset)], at: start, to: &file.content) }
            start = end
        }
    }

    private func image(_ files: [Int: DiskImage.File]) -> DiskImage {
        var image = DiskImage(nodes: nodes, files: [:], nextFile: nextFile)
        // If a directory was lost, everything in it was lost, too.
        for path in nodes.keys.sorted() where !path.isEmpty && image.nodes[Self.parent(of: path)] != .directory {
            image.nodes[path] = nil
        }
        for case .file(let number) in image.nodes.values { image.files[number] = files[number] }
        return image
    }

    private static func parent(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    }
}

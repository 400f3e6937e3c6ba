/// Why there is not enough free space, in numbers for the operator.
public struct SpaceShortage: Sendable, Hashable {
    /// The data directory.
    public var root: String
    /// Free bytes.
    public var free: Int64
    /// Bytes that have to stay free.
    public var kept: Int64
    /// Bytes that were announced and would have to fit, too.
    public var announced: Int64
}

extension SpaceShortage: CustomStringConvertible {
    /// The numbers in a sentence for the operator.
    public var description: String {
        let upload = announced > 0 ? ", with \(announced) announced" : ""
        return "\(root) has \(free) bytes free\(upload), and \(kept) have to stay free (--min-free)"
    }
}

extension UploadStore {
    /// What is missing for new uploads; `nil` if there is enough free space, or if it is unknown.
    package var spaceShortage: SpaceShortage? {
        guard let space = try? context.area.space() else { return nil }
        return context.shortage(free: space.free, kept: context.configuration.effectiveMinFree(total: space.total))
    }
}

extension StoreContext {
    /// What is missing below `announced` bytes and those that are kept.
    func shortage(free: Int64, kept: Int64, announced: Int64 = 0) -> SpaceShortage? {
        let needed = kept.addingReportingOverflow(announced)
        guard needed.overflow || free < needed.partialValue else { return nil }
        return SpaceShortage(root: location, free: free, kept: kept, announced: announced)
    }
}

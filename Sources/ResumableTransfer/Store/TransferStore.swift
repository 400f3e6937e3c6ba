import Foundation
import SystemCalls

/// Keeps transfers in a directory, so that a later launch of the program resumes them.
///
/// Each transfer has a name that the program chooses. `upload(file:to:fields:as:userInfo:)` and the other methods
/// that begin a transfer resume the transfer of that name if the store has one. While the transfer runs, the store
/// saves each of its checkpoints. It removes the entry when the transfer has succeeded, was canceled, or cannot be
/// resumed any more. The entry of a canceled upload is kept if the server did not confirm the deletion. A transfer is
/// kept from its first checkpoint on: when the server has announced an upload resource, or the first bytes of a download
/// were received.
///
/// An entry is a file `NAME.state` in the directory, which only its owner can access. It contains the URI of an upload
/// resource, with which the upload can be changed, but no credentials. While a transfer runs, the file `NAME.lock` is
/// locked, so that one transfer at a time, in all processes, uses the entry.
/// ``TransferClient/Configuration/onCheckpoint`` is not called for transfers of a store. Do not use the resume data of
/// such a transfer elsewhere while it is in the store.
///
/// A store is a value with an open directory. Several stores, even in different processes, can use one directory.
public struct TransferStore: Sendable {
    /// The client that runs the transfers. Its storage directory has the partial files of downloads without a
    /// destination.
    public let client: TransferClient
    /// Called with the name of an entry and the error, whenever a checkpoint could not be saved. The transfer
    /// continues, and the earlier checkpoint is kept.
    public var onSaveFailure: (@Sendable (_ name: String, _ error: TransferError) -> Void)?

    let directory: PrivateDirectory

    /// Opens a directory, and creates it with mode 0700 if it is missing. This makes a few system calls, and
    /// does not wait for anything else.
    /// - Parameters:
    ///   - path: an absolute path. The directory must belong to the user and not be writable by others. Use it for
    ///     nothing else.
    ///   - client: the client that runs the transfers.
    /// - Throws: ``TransferError`` with the code `storageUnusable`.
    public init(directory path: String, client: TransferClient) throws(TransferError) {
        try self.init(directory: FilePath(path), client: client)
    }

    /// Opens a directory whose path need not be UTF-8.
    package init(directory path: FilePath, client: TransferClient) throws(TransferError) {
        do throws(StateError) {
            directory = try PrivateDirectory.create(path)
        } catch {
            throw TransferError(error)
        }
        self.client = client
    }

    /// Opens a directory, and creates it with mode 0700 if it is missing. This makes a few system calls, and
    /// does not wait for anything else.
    /// - Parameters:
    ///   - url: a file URL. The directory must belong to the user and not be writable by others. Use it for nothing
    ///     else.
    ///   - client: the client that runs the transfers.
    /// - Throws: ``TransferError`` with the code `storageUnusable`, including for a URL with another scheme.
    public init(directory url: URL, client: TransferClient) throws(TransferError) {
        try self.init(directory: FilePath(requiringFile: url), client: client)
    }

    /// The entries of the store, sorted by their names: all transfers that can be resumed or are running, and the
    /// entries that cannot be read. A transfer that has no checkpoint yet is not listed. Other processes may run transfers
    /// of the store meanwhile: their locks do not delay the list.
    public func entries() async -> [Entry] {
        await BlockingWork.run { [directory] in directory.entries() }
    }

    /// The entry with this name; `nil` if there is none.
    public func entry(_ name: String) async -> Entry? {
        guard let stem = try? Self.stem(of: name) else { return nil }
        return await BlockingWork.run { [directory] in directory.entry(stem) }
    }

    // MARK: Names

    /// The maximum length in bytes of a name without suffixes. The longest file name, `.NAME.state.tmp`, has 11 more.
    private static let maxStemLength = 240

    /// The name of an entry's file without its suffix: the name of the entry, in which a percent sign, a slash, control
    /// characters and a dot at the beginning are percent-encoded.
    static func stem(of name: String) throws(TransferError) -> FilePath {
        var text = name.utf8.percentEncoded {
            $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "%")
        }
        if text.utf8.first == UInt8(ascii: ".") { text = "%2E" + text.dropFirst() }
        guard !text.isEmpty, text.utf8.count <= maxStemLength else {
            throw TransferError(
                .invalidRequest, "The name of an entry must have 1 to \(maxStemLength) bytes.")
        }
        return FilePath(text)
    }

    /// The name of the entry whose file has this name without its suffix.
    static func name(of stem: FilePath) -> String {
        let text = stem.repairedText
        guard let name = text.removingPercentEncoding, (try? Self.stem(of: name)) == stem else { return text }
        return name
    }
}

extension TransferStore {
    /// A transfer in a store, as it was when the entry was read.
    public struct Entry: Sendable, Hashable, Identifiable {
        /// The name that the program has chosen.
        public let name: String
        /// The time of the last save.
        public let date: Date
        /// Whether a process was running the transfer.
        public let isRunning: Bool
        /// The ID of the process that was running the transfer; `nil` if there was none, or if it is unknown.
        public let process: Int32?
        /// The reason why the entry cannot be read; `nil` if it can. Such an entry has no ``resumeData`` and no
        /// ``userInfo``, and can only be discarded.
        public let damage: TransferError?
        let stored: StoredTransfer?
        /// The name of the file without its suffix.
        package let stem: FilePath

        /// The same as ``name``.
        public var id: String { name }
        /// The strings that the program has stored with the transfer.
        public var userInfo: [String: String] { stored?.userInfo ?? [:] }
        /// The data to resume the transfer with; `nil` if the entry cannot be read. The store resumes an entry with
        /// ``TransferStore/resume(_:from:request:)``.
        public var resumeData: ResumeData? { stored?.resumeData }
        /// The kind of the transfer; `nil` if the entry cannot be read.
        public var kind: ResumeData.Kind? { resumeData?.kind }
        /// The request that began the transfer, without credentials; `nil` if the entry cannot be read.
        public var request: TransferRequest? { resumeData?.request }
        /// The absolute path of the file that is uploaded, or of the destination of the download; `nil` if there is
        /// none, or if the entry cannot be read.
        public var path: String? { resumeData?.path }
        /// The number of bytes of the representation that need not be transferred again, according to the resume data.
        public var position: Int64 { resumeData?.position ?? 0 }
        /// The length of the representation in bytes; `nil` while it is unknown, or if the entry cannot be read.
        public var total: Int64? { resumeData?.total }

        /// Whether both were read from the same state of the same entry.
        public static func == (left: Entry, right: Entry) -> Bool {
            left.stem == right.stem && left.date == right.date && left.isRunning == right.isRunning
                && left.process == right.process && left.stored == right.stored
                && left.damage?.message == right.damage?.message
        }

        /// Hashes the name and the content.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(stem)
            hasher.combine(stored)
        }
    }
}

extension PrivateDirectory {
    /// All states in the directory, sorted by their names, and those that cannot be read.
    package func entries() -> [TransferStore.Entry] {
        let names = names()
        let locks = Set(names.filter { FilePath($0).hasSuffix(StateFile.lockSuffix) })
        return stems(in: names).compactMap { stem in
            entry(stem, isLockPossible: locks.contains((stem + StateFile.lockSuffix).repairedText))
        }
    }

    /// The names of all states, without their suffix.
    package func stems() -> [FilePath] { stems(in: names()) }

    /// The names of the states whose files are among `names`, without their suffix.
    package func stems(in names: [String]) -> [FilePath] {
        names.map { FilePath($0) }
            .filter { $0.hasSuffix(StateFile.suffix) && $0.bytes.first != UInt8(ascii: ".") }
            .map { FilePath($0.bytes.dropLast(StateFile.suffix.bytes.count)) }
    }

    /// - Parameter isLockPossible: whether a lock file may exist.
    /// - Returns: `nil` if there is no such state.
    func entry(_ stem: FilePath, isLockPossible: Bool = true) -> TransferStore.Entry? {
        let fileName = stem + StateFile.suffix
        var stored: StoredTransfer?
        var damage: StateError?
        do throws(StateError) {
            guard let data = try read(fileName) else { return nil }
            stored = try StoredTransfer.decode(data, from: path(of: fileName))
        } catch {
            damage = error
        }
        let holder = isLockPossible ? StateLock.holder(of: stem + StateFile.lockSuffix, in: self) : (false, nil)
        return TransferStore.Entry(
            name: TransferStore.name(of: stem),
            date: Date(timeIntervalSince1970: TimeInterval(stored?.savedAt ?? modified(fileName) ?? 0)),
            isRunning: holder.0, process: holder.1, damage: damage.map { TransferError($0) }, stored: stored, stem: stem
        )
    }
}

/// A source that can be known again by a later process.
protocol RecognizableSource: UploadSource {
    /// By what it is known. It reads some of the content.
    func record() throws(TransferError) -> SourceRecord

    /// Whether it still is what it was when it was opened.
    var isUnchanged: Bool { get }
}

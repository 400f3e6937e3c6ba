/// A published file as the blob area gives it.
package struct PublishedBlob: Sendable {
    /// As ``Blob/identity()`` of the bytes before they were published.
    package var identity: String
    package var file: PublishedFile
}

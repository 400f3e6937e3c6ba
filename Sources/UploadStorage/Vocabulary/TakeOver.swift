/// What the one gets who takes an upload over.
package enum TakeOver: Sendable {
    /// The right to write, from `received` on.
    case lease(UploadLease)
    /// The target resource works on it and has not ended within the wait. It was not disturbed.
    case processing(UploadRecord)
    /// It has its final response.
    case complete(UploadRecord)
}

import Foundation

/// On Apple's platforms the session of Foundation can pause and resume uploads and downloads.
public typealias ResumableURLSession = URLSession

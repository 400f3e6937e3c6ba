/// The key of the resume data in the `userInfo` of a failed download's error. The name is Apple's.
// swift-format-ignore: AlwaysUseLowerCamelCase
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

/// The key of the resume data in the `userInfo` of a failed upload's error. The name is Apple's.
// swift-format-ignore: AlwaysUseLowerCamelCase
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"

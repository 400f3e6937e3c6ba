// The texts of the page by language.
export const texts = { en: { files: "Files" }, de: { files: "Dateien" } };

// The storage that is used.

let usageTimer = 0;

/** Shows the own usage below the files. Uploads that end at the same time need one request. */
function showUsage() {
  clearTimeout(usageTimer);
  usageTimer = setTimeout(loadUsage, 300);
}

async function loadUsage() {
  const footer = byID("usage");
  try {
    const { principal, bytes, quota } = await (await request(`${page.base}onward/usage`)).json();
    footer.hidden = bytes === null;
    if (bytes === null) return;
    const sentence = quota === null ? text("ownUsage", { bytes: formatSize(bytes) })
      : text("ownQuota", { bytes: formatSize(bytes), quota: formatSize(quota) });
    const name = session.token === null ? "" : `${text("tokenOf", { name: visible(principal) })} · `;
    footer.replaceChildren(element("p", { text: name + sentence }));
    if (quota !== null) {
      footer.append(element("meter", {
        min: 0, max: quota, value: Math.min(bytes, quota), high: quota * 0.9, "aria-label": text("ownMeter"),
      }));
    }
  } catch {
    footer.hidden = true;
  }
}

/** For the scope `admin`: the usage of all principals, and the free space. */
async function openUsage() {
  let usage;
  try { usage = await (await request(`${page.base}onward/usage?all`)).json(); } catch (error) {
    return showProblem(reason(error));
  }
  const { principals, quota, free, minFree } = usage;
  const content = [];
  if (principals) {
    const rows = principals.toSorted((one, other) => other.bytes - one.bytes).map(({ principal, bytes, uploads }) =>
      element("tr", {},
        element("th", { scope: "row", text: visible(principal) }), element("td", { text: formatSize(bytes) }),
        element("td", { text: numbers.format(uploads) })));
    const headings = ["principal", "bytes", "unfinished"].map((key) => element("th", { scope: "col", text: text(key) }));
    content.push(element("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": text("usageTitle") },
      element("table", { class: "usage" }, element("thead", {}, element("tr", {}, ...headings)),
        element("tbody", {}, ...rows))));
  }
  const sentences = [
    ...(quota ? [text("quotaOfEach", { quota: formatSize(quota) })] : []),
    ...(free === null ? [] : [text("freeSpace", { free: formatSize(free), minFree: formatSize(minFree ?? 0) })]),
  ];
  content.push(...sentences.map((sentence) => element("p", { text: sentence })));
  await ask(text("usageTitle"), content, [{ value: null, label: text("close") }]);
}

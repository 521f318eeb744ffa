/**
 * The page's own fonts inside a picture, so that it looks the same wherever it is opened. Where a page has none of its own,
 * or they cannot be read, the picture names the same families and whoever opens it uses what is there.
 */

const fontFiles = new Map(); // address -> its bytes as a data: URL, or null

function* fontFaces(sheets = document.styleSheets) {
  for (const sheet of sheets) {
    let rules = [];
    try {
      rules = sheet.cssRules;
    } catch {
      continue; // a sheet from elsewhere is not ours to read
    }
    for (const rule of rules) if (rule instanceof CSSFontFaceRule) yield { rule, base: sheet.href ?? document.baseURI };
  }
}

const familyName = (text) => text.trim().replace(/^["']|["']$/g, '');

function dataUrl(address) {
  if (!fontFiles.has(address)) {
    fontFiles.set(address, fetch(address).then((answer) => (answer.ok ? answer.blob() : Promise.reject(new Error(String(answer.status))))).then((blob) => new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.onerror = () => reject(reader.error);
      reader.readAsDataURL(blob);
    })).catch(() => null));
  }
  return fontFiles.get(address);
}

/** The first family of each list that a picture names. */
export function firstFamilies(markup) {
  const lists = [...markup.matchAll(/ font-family="([^"]*)"/g)].map(([, list]) => list.replaceAll('&quot;', '"'));
  return new Set(lists.map((list) => familyName(list.split(',')[0])));
}

/** The @font-face rules of the fonts that a picture names first, with the fonts themselves inside. */
export async function fontRules(markup) {
  const families = firstFamilies(markup);
  const isSlanted = markup.includes('font-style="italic"');
  const rules = [];
  for (const { rule, base } of fontFaces()) {
    const { style } = rule;
    const family = familyName(style.getPropertyValue('font-family'));
    const slant = style.getPropertyValue('font-style') || 'normal';
    if (!families.has(family) || (slant !== 'normal' && !isSlanted)) continue;
    const address = /url\(["']?([^"')]+)["']?\)/.exec(style.getPropertyValue('src'))?.[1];
    const data = address && (await dataUrl(new URL(address, base).href));
    if (data) rules.push(`@font-face{font-family:"${family}";font-style:${slant};font-weight:${style.getPropertyValue('font-weight') || 'normal'};src:url(${data})}`);
  }
  return rules.join('');
}

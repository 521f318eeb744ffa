/**
 * Numbers as people read them, the same everywhere on the page. Units always; decimal prefixes (1 kB = 1,000 B).
 *
 * Rounding must not lie. A probability above 0 never prints as 0, one below 1 never as 1.
 */

const WHOLE_NUMBERS = new Intl.NumberFormat('en-US'); // made once: toLocaleString makes one at every call

/** 49152 -> "49,152" */
export function formatCount(n) {
  return WHOLE_NUMBERS.format(Math.round(n));
}

/** Three significant digits, no exponent for everyday sizes: 1234.5 -> "1,230", 0.01234 -> "0.0123" */
export function formatNumber(x, digits = 3) {
  if (!Number.isFinite(x)) return String(x);
  if (x === 0) return '0';
  const size = Math.abs(x);
  if (size < 1e-4 || size >= 1e9) return x.toExponential(1).replace('e+', 'e').replace('.0e', 'e');
  return Number(x.toPrecision(digits)).toLocaleString('en-US', { maximumSignificantDigits: digits });
}

/** 46080 -> "46,080 B" up to 100 kB exactly, then "415 kB", "2.95 MB", "1.21 GB" */
export function formatBytes(bytes) {
  if (bytes === null || bytes === undefined) return '–';
  if (Math.abs(bytes) < 100_000) return `${formatCount(bytes)} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  let value = bytes / 1000;
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toLocaleString('en-US', { minimumSignificantDigits: 3, maximumSignificantDigits: 3 })} ${units[unit]}`;
}

/** 0.1234 -> "0.12 ms", 8.21 -> "8.2 ms", 109.3 -> "109 ms", 1210 -> "1.21 s" */
export function formatMs(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms >= 999.5) return `${(ms / 1000).toFixed(2)} s`;
  const digits = ms >= 99.95 ? 0 : ms >= 1 ? 1 : 2;
  return `${ms.toFixed(digits)} ms`;
}

/** 0.4642 -> "0.464", 0.00012 -> "0.00012", 3e-9 -> "3e-9", 0.99996 -> ">0.999" */
export function formatProb(p) {
  if (p === null || p === undefined) return '–';
  if (p === 0) return '0';
  if (p === 1) return '1';
  if (p > 0.9995) return '>0.999';
  if (p >= 0.00995) return p.toFixed(3);
  return p >= 1e-4 ? String(Number(p.toPrecision(2))) : p.toExponential(0);
}

/** 0.1234 -> "12.3%", 0.00001 -> "<0.1%" */
export function formatShare(part) {
  if (part === 0 || part === 1) return `${part * 100}%`;
  if (part < 0.001) return '<0.1%';
  if (part > 0.999) return '>99.9%';
  return `${(part * 100).toFixed(1)}%`;
}

/** 2.345 -> "2.35 bits" */
export function formatBits(bits) {
  return `${bits.toFixed(2)} bits`;
}

import type { MetricFormat } from 'osl-compiler';

/** A figure as its metric says it is shown: `12.5%`, `1234.50 EUR`, `3 kg`. What is no plain decimal stays as it is. */
export function shownFigure(value: string, format: MetricFormat): string {
  const [, sign = '', whole = '', part = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(value) ?? [];
  if (whole === '') return value;
  const decimals = format.decimals ?? DECIMALS[format.kind];
  switch (format.kind) {
    case 'percent':
      return `${decimal(sign, whole + part.padEnd(2, '0').slice(0, 2), part.slice(2), decimals)}%`;
    case 'currency':
      return withUnit(decimal(sign, whole, part, decimals), format.currency);
    case 'number':
      return withUnit(decimal(sign, whole, part, decimals), format.unit);
    default: {
      const unknown: never = format.kind;
      return unknown;
    }
  }
}

/** Digits behind the point where the manifest says none; null for those that the value has. */
const DECIMALS: Readonly<Record<MetricFormat['kind'], number | null>> = {
  percent: 1,
  currency: 2,
  number: null,
};

function withUnit(text: string, unit: string | undefined): string {
  return unit === undefined ? text : `${text} ${unit}`;
}

/** `whole.part` with as many digits behind the point, rounded half away from zero as Postgres rounds. */
function decimal(sign: string, whole: string, part: string, decimals: number | null): string {
  const digits = decimals ?? part.length;
  const kept = BigInt(whole + part.slice(0, digits).padEnd(digits, '0'));
  const up = (part[digits] ?? '0') >= '5' ? 1n : 0n;
  const text = String(kept + up).padStart(digits + 1, '0');
  const point = text.length - digits;
  const shown = digits === 0 ? text : `${text.slice(0, point)}.${text.slice(point)}`;
  return kept + up === 0n ? shown : `${sign}${shown}`;
}

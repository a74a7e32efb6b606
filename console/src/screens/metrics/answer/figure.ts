/** How a figure is meant to be shown, as a manifest says it. */
export interface FigureFormat {
  readonly kind: 'number' | 'percent' | 'currency';
  readonly currency?: string | undefined;
  readonly unit?: string | undefined;
  readonly decimals?: number | undefined;
}

/** A figure of an answer as a number; null for what is none. Numbers beyond a double's come as texts. */
export function numberOf(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'string' || value.trim() === '') return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** A figure as people read it, by its format; other values as they are. */
export function shownFigure(value: unknown, format: FigureFormat | null | undefined): string {
  if (value === null || value === undefined) return '';
  const number = numberOf(value);
  if (number === null) return typeof value === 'object' ? JSON.stringify(value) : String(value);
  return (
    formatter(format ?? null).format(exact(value, number)) +
    (format?.unit === undefined ? '' : ` ${format.unit}`)
  );
}

/** Numbers of more digits than a double has come as texts, and are shown with every digit. */
function exact(value: unknown, number: number): number | Intl.StringNumericLiteral {
  return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value)
    ? (value as Intl.StringNumericLiteral)
    : number;
}

function formatter(format: FigureFormat | null): Intl.NumberFormat {
  const decimals =
    format?.decimals === undefined
      ? { maximumFractionDigits: 2 }
      : { minimumFractionDigits: format.decimals, maximumFractionDigits: format.decimals };
  switch (format?.kind) {
    case 'percent':
      return new Intl.NumberFormat('en', {
        style: 'percent',
        maximumFractionDigits: 1,
        ...(format.decimals === undefined ? {} : decimals),
      });
    case 'currency':
      return new Intl.NumberFormat('en', {
        ...currencyOf(format),
        ...(format.decimals === undefined ? {} : decimals),
      });
    case 'number':
    case undefined:
      return new Intl.NumberFormat('en', decimals);
    default: {
      const unknown: never = format as never;
      return unknown;
    }
  }
}

/** ISO 4217 has three letters; the manifest is not trusted to have them. */
function currencyOf({ currency = '' }: FigureFormat): Intl.NumberFormatOptions {
  return /^[A-Z]{3}$/.test(currency) ? { style: 'currency', currency } : {};
}

/** How much a figure changed, as a share of what it was; null where that is no number. */
export function changeOf(now: unknown, before: unknown): number | null {
  const [a, b] = [numberOf(now), numberOf(before)];
  return a === null || b === null || b === 0 ? null : (a - b) / Math.abs(b);
}

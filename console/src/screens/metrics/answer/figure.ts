/** Display format of a figure, as declared in the manifest. */
export interface FigureFormat {
  readonly kind: 'number' | 'percent' | 'currency';
  readonly currency?: string | undefined;
  readonly unit?: string | undefined;
  readonly decimals?: number | undefined;
}

/** Converts a figure to a number; null if it is not one. Numbers too precise for a double arrive as text. */
export function numberOf(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value !== 'string' || value.trim() === '') return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** Formats a figure for display; returns other values unchanged. */
export function shownFigure(value: unknown, format: FigureFormat | null | undefined): string {
  if (value === null || value === undefined) return '';
  const number = numberOf(value);
  if (number === null) return typeof value === 'object' ? JSON.stringify(value) : String(value);
  return (
    formatter(format ?? null).format(exact(value, number)) +
    (format?.unit === undefined ? '' : ` ${format.unit}`)
  );
}

/** Figure for `Intl.NumberFormat`. A number too precise for a double arrives as text and keeps all its digits. */
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

/** Currency style if the manifest's code has three letters as in ISO 4217, otherwise none. */
function currencyOf({ currency = '' }: FigureFormat): Intl.NumberFormatOptions {
  return /^[A-Z]{3}$/.test(currency) ? { style: 'currency', currency } : {};
}

/** Relative change of a figure, such as 0.1 for 10 % more; null if either is not a number or `before` is 0. */
export function changeOf(now: unknown, before: unknown): number | null {
  const [a, b] = [numberOf(now), numberOf(before)];
  return a === null || b === null || b === 0 ? null : (a - b) / Math.abs(b);
}

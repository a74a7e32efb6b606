/** How a metric's figures are meant to be shown; what a manifest does not say is absent. No answer is changed by it. */
export interface MetricFormat {
  /** `percent`: 0.25 is 25 percent. */
  readonly kind: 'number' | 'percent' | 'currency';
  /** Of `currency`: its code by ISO 4217. */
  readonly currency?: string;
  /** Of `number`: what is counted or measured, `kg`. */
  readonly unit?: string;
  /** Digits behind the point. */
  readonly decimals?: number;
}

/** What figures of `format` are in, for readers of descriptions: `percent`, `EUR`, `kg`; null where it does not say. */
export function formatUnit({ kind, currency, unit }: MetricFormat): string | null {
  switch (kind) {
    case 'percent':
      return 'percent';
    case 'currency':
      return currency ?? null;
    case 'number':
      return unit ?? null;
    default: {
      const unknown: never = kind;
      return unknown;
    }
  }
}

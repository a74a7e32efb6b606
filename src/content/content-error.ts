const CONTENT_ERRORS = [
  'storeMissing',
  'storeBuilding',
  'storeMismatch',
  /** Another `indexFacet` run for the same facet version took over. */
  'overtaken',
  /** The source has document ids that are NULL or not unique. */
  'documentIds',
  /** The extension is missing, or is installed in a schema other than `public`. */
  'vectorExtension',
  /** The vectors are wider than an approximate index can hold. */
  'tooWide',
  'unknownModel',
  'unknownDetector',
  'unknownCountry',
  'unknownVersion',
  /** The embedding or chat endpoint is unreachable or refuses the request, even after retries. */
  'endpoint',
  'malformedAnswer',
  /** The subject's daily model budget is used up, or its usage cannot be counted. */
  'overBudget',
  'notInstalled',
] as const;

export type ContentErrorName = (typeof CONTENT_ERRORS)[number];

/** An error of the content layer, with a code. `message` is one lower-case sentence and contains no row data. */
export class ContentError extends Error {
  override readonly name = 'ContentError';
  readonly code: ContentErrorName;
  readonly hint: string | null;
  /** HTTP status of the endpoint's response; null if it did not respond. */
  readonly status: number | null;

  constructor(
    code: ContentErrorName,
    message: string,
    hint: string | null = null,
    status: number | null = null,
  ) {
    super(message);
    this.code = code;
    this.hint = hint;
    this.status = status;
  }
}

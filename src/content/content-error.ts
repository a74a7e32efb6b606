const CONTENT_ERRORS = [
  'storeMissing',
  'storeBuilding',
  'storeMismatch',
  /** Another `indexFacet` of the same facet version took over. */
  'overtaken',
  /** Document ids of the source are NULL or not unique. */
  'documentIds',
  /** The extension is missing, or is in another schema than `public`. */
  'vectorExtension',
  /** The vectors are wider than an approximate index can hold. */
  'tooWide',
  'unknownModel',
  'unknownDetector',
  'unknownCountry',
  'unknownVersion',
  /** The embedding or chat endpoint cannot be reached or refuses, after retries. */
  'endpoint',
  'malformedAnswer',
  /** The subject's daily budget for models is used up, or cannot be counted. */
  'overBudget',
  'notInstalled',
] as const;

export type ContentErrorName = (typeof CONTENT_ERRORS)[number];

/** A coded failure of the content layer. `message` is one lower-case sentence and contains no row data. */
export class ContentError extends Error {
  override readonly name = 'ContentError';
  readonly code: ContentErrorName;
  readonly hint: string | null;
  /** HTTP status of the endpoint's answer, if it answered. */
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

/** Why one row has no value. */
const DECODER_FAULTS = [
  'endpoint',
  'malformedAnswer',
  'refusal',
  'cutOff',
  'schema',
  'quote',
  'range',
  /** The time of the question was up before this row's turn. */
  'late',
  /** What the subject may send in a day is sent. */
  'budget',
] as const;
export type DecoderFault = (typeof DECODER_FAULTS)[number];

export class DecoderFailure extends Error {
  override readonly name = 'DecoderFailure';
  readonly fault: DecoderFault;

  constructor(fault: DecoderFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

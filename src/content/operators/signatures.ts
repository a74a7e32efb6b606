/** The operators' signatures are the language's: the compiler has the one table. */
export {
  type ArgumentType,
  type DecoderName,
  type EncoderName,
  OPERATORS,
  type OperatorArgument,
  type OperatorName,
  type OperatorSignature,
  operatorNamed,
} from 'osl-compiler';

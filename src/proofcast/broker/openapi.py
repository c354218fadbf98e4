"""The API as an OpenAPI 3.1 document, written from the table of operations."""

from collections.abc import Iterable, Mapping

from proofcast.broker.operations.operation import JSON, Operation, Parameter, Place
from proofcast.broker.schemas import SCHEMAS, refer

EMPTY_STATUSES = (101, 204)
PROBLEM_TYPE = "application/problem+json"

Document = dict[str, object]


def build_openapi(version: str, operations: Iterable[Operation]) -> Document:
    paths: dict[str, dict[str, Document]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = describe_operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Proofcast broker",
            "version": version,
            "description": "Verified events, replayable from any cursor, undone when the chain undoes them.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(SCHEMAS),
            "responses": {"Problem": {"description": "Refused.", "content": describe_content(PROBLEM_TYPE, "Problem")}},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def describe_operation(operation: Operation) -> Document:
    described: Document = {
        "operationId": operation.name,
        "summary": operation.meaning,
        "parameters": [describe_parameter(one) for one in operation.parameters],
        "responses": {
            **{str(status): describe_answer(operation, status) for status in operation.statuses},
            "default": {"$ref": "#/components/responses/Problem"},
        },
    }
    if operation.body:
        described["requestBody"] = {
            "required": operation.is_body_needed,
            "content": describe_content(JSON, operation.body),
        }
    return described


def describe_parameter(parameter: Parameter) -> Document:
    return {
        "name": parameter.name,
        "in": str(parameter.place),
        "required": parameter.place is Place.PATH,
        "description": parameter.meaning,
        "schema": parameter.schema,
    }


def describe_answer(operation: Operation, status: int) -> Document:
    if status in EMPTY_STATUSES:
        return {"description": operation.meaning}
    return {"description": operation.meaning, "content": describe_content(operation.content_type, operation.answer)}


def describe_content(content_type: str, schema: str) -> Mapping[str, object]:
    return {content_type: {"schema": refer(schema)} if schema else {}}

//! The API document: one table of calls and the shapes they carry, from which
//! `/openapi.json` is made. A test asks the router for every call in it.

mod calls;
mod comments;
mod shapes;

use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApiBuilder, Paths, Ref, RefOr,
    Required, ResponseBuilder, Schema,
};

pub(crate) use calls::{CALLS, Entry};

/// The document, in JSON.
pub fn document() -> Vec<u8> {
    let mut paths = Paths::new();
    for call in CALLS {
        let operation = operation(call);
        paths.add_path_operation(call.path, vec![call.method.clone()], operation);
    }
    let info = InfoBuilder::new()
        .title("Tideline")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(calls::ABOUT))
        .build();
    let document = OpenApiBuilder::new()
        .info(info)
        .paths(paths)
        .components(Some(components()))
        .security(Some([SecurityRequirement::new::<_, [&str; 0], &str>("bearer", [])]))
        .build();
    serde_json::to_vec(&document).expect("the document has only string keys")
}

fn operation(call: &Entry) -> utoipa::openapi::path::Operation {
    let mut operation = OperationBuilder::new()
        .summary(Some(call.says))
        .operation_id(Some(call.id))
        .tag(call.tag());
    for name in call.path.split('/').filter_map(|s| s.strip_prefix('{')) {
        let name = &name[..name.find('}').unwrap_or(name.len())];
        operation = operation.parameter(
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .schema(Some(plain(Type::String))),
        );
    }
    for (name, kind, says) in call.query {
        operation = operation.parameter(
            ParameterBuilder::new()
                .name(*name)
                .parameter_in(ParameterIn::Query)
                .required(Required::False)
                .description(Some(*says))
                .schema(Some(plain(kind.clone()))),
        );
    }
    for (name, says) in call.headers {
        operation = operation.parameter(
            ParameterBuilder::new()
                .name(*name)
                .parameter_in(ParameterIn::Header)
                .required(Required::False)
                .description(Some(*says))
                .schema(Some(plain(Type::String))),
        );
    }
    if let Some((kind, shape)) = call.body {
        let content = ContentBuilder::new().schema(Some(shape_ref(shape))).build();
        let body = RequestBodyBuilder::new().content(kind, content).required(Some(Required::True));
        operation = operation.request_body(Some(body.build()));
    }
    let (status, answer) = call.answer;
    let mut good = ResponseBuilder::new().description("Done.");
    if let Some((kind, shape)) = answer {
        good = good.content(kind, ContentBuilder::new().schema(Some(shape_ref(shape))).build());
    }
    let problem = ContentBuilder::new().schema(Some(shape_ref("Problem"))).build();
    let bad = ResponseBuilder::new()
        .description("Not done; `code` says why.")
        .content("application/problem+json", problem);
    operation.response(status, good.build()).response("default", bad.build()).build()
}

fn plain(kind: Type) -> Schema {
    Schema::Object(ObjectBuilder::new().schema_type(SchemaType::Type(kind)).build())
}

fn shape_ref(name: &str) -> RefOr<Schema> {
    match name {
        "Text" => RefOr::T(plain(Type::String)),
        "Object" => RefOr::T(plain(Type::Object)),
        name => RefOr::Ref(Ref::from_schema_name(name)),
    }
}

fn components() -> Components {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    comments::add(shapes::add(ComponentsBuilder::new()))
        .security_scheme("bearer", SecurityScheme::Http(bearer))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_that_a_call_names_is_described() {
        let text = String::from_utf8(document()).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for part in text.split("#/components/schemas/").skip(1) {
            let name = &part[..part.find('"').unwrap()];
            assert!(schemas.contains_key(name), "{name}");
        }
        assert!(document["paths"]["/v1/users/{user}/history"]["post"].is_object());
    }

    #[test]
    fn every_call_has_a_name_of_its_own() {
        let mut ids: Vec<_> = CALLS.iter().map(|call| call.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), CALLS.len());
    }
}

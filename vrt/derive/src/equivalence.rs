//! `#[derive(Equivalence)]`: a static that knows the offsets and types of a struct's fields.

use proc_macro2::TokenStream as Tokens;
use quote::quote;
use syn::{Data, DeriveInput, Error, Index, LitStr, Path, Result, Type};

pub(crate) fn expand(input: &DeriveInput) -> Result<Tokens> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "only structs have a datatype: enums and unions have bytes that are no values",
        ));
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            "a generic struct has no single datatype: implement `Equivalence` for the types you \
             send",
        ));
    }
    let vrt = crate_path(input)?;
    let name = &input.ident;
    let mut fields = Vec::new();
    for (i, field) in data.fields.iter().enumerate() {
        let datatype = datatype_of(&vrt, &field.ty)?;
        let index = Index::from(i);
        let member = field.ident.as_ref().map_or(quote!(#index), |name| quote!(#name));
        fields.push(quote!((::core::mem::offset_of!(#name, #member), #datatype)));
    }
    Ok(quote! {
        // SAFETY: the datatype names exactly the struct's fields, each with its own datatype.
        unsafe impl #vrt::datatype::Equivalence for #name {
            type Out = #vrt::datatype::DatatypeRef<'static>;

            fn equivalent_datatype() -> Self::Out {
                static DATATYPE: #vrt::datatype::internal::DerivedDatatype =
                    #vrt::datatype::internal::DerivedDatatype::new(|| {
                        #vrt::datatype::internal::structure(
                            ::core::mem::size_of::<#name>(),
                            &[#(#fields),*],
                        )
                    });
                DATATYPE.as_ref()
            }
        }
    })
}

/// An expression for the datatype of a field.
fn datatype_of(vrt: &Tokens, ty: &Type) -> Result<Tokens> {
    match ty {
        Type::Array(array) => {
            let (len, element) = (&array.len, datatype_of(vrt, &array.elem)?);
            Ok(quote!(#vrt::datatype::internal::array({ let len: usize = #len; len }, &#element)))
        }
        Type::Tuple(tuple) => {
            let mut fields = Vec::new();
            for (i, element) in tuple.elems.iter().enumerate() {
                let (index, datatype) = (Index::from(i), datatype_of(vrt, element)?);
                fields.push(quote!((::core::mem::offset_of!(#tuple, #index), #datatype)));
            }
            Ok(quote! {
                #vrt::datatype::internal::structure(
                    ::core::mem::size_of::<#tuple>(),
                    &[#(#fields),*],
                )
            })
        }
        Type::Paren(inner) => datatype_of(vrt, &inner.elem),
        Type::Group(inner) => datatype_of(vrt, &inner.elem),
        Type::Path(path) => Ok(quote! {
            #vrt::datatype::internal::owned(
                <#path as #vrt::datatype::Equivalence>::equivalent_datatype(),
            )
        }),
        other => Err(Error::new_spanned(
            other,
            "a field of this type cannot be sent: numbers, bools, structs with a datatype, and \
             arrays and tuples of those can",
        )),
    }
}

/// Where the `vrt` crate is: as `#[mpi(crate = "..")]` says, or by its name in this package.
fn crate_path(input: &DeriveInput) -> Result<Tokens> {
    let mut path: Option<Path> = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("mpi")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") || path.is_some() {
                return Err(meta.error("one `crate = \"path\"` is allowed here"));
            }
            path = Some(meta.value()?.parse::<LitStr>()?.parse()?);
            Ok(())
        })?;
    }
    Ok(path.map_or_else(super::vrt_path, |path| quote!(#path)))
}
